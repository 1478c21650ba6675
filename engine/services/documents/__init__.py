"""Documents as tables of blocks: PDF, DOCX, HTML, Markdown and text, read in a process of limited
time and memory."""
