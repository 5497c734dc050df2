"""The update cycle: chunks come in, lessons are taught and measured, galleries embedded, releases made.

Where nothing else is said, a workspace is opened for writing, since features are kept; a chunk or a release is named by
its id or a unique beginning of it; `by` is who says so and `why` the reason, which are kept; `progress` is told each
stage; and `scratch` is a folder for checkpoints.
"""
