"""Traces from traces: cut, idle time dropped, filtered, merged; and a synthetic equivalent as a protocol."""
