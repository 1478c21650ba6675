"""Statistics that certify the accuracy, recall and precision of cascades."""
