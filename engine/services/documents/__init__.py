"""Documents as tables of blocks: PDF, DOCX, PPTX, EPUB, e-mails, HTML, Markdown and text, read in
a process of limited time and memory."""

from blendfusion.services import Service

SERVICE = Service(
    needs=("services.scans",),
    session="session:DocumentReading",
    relations={"read_documents": "in_queries:read_in", "read_text": "whole_texts:read_in"},
)
