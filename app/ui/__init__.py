"""The Gradio pages, one file per tab, no logic."""
