"""The update cycle: chunks come in, lessons are taught and measured, galleries embedded, releases made."""
