"""The guided demo and its scripted twin."""
