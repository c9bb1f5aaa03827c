"""Traces of block I/O requests: capture, decoding, storage, characterisation."""
