"""`structured_output`: replies have the form that was asked for, or it is said that they do not."""

from .config import SchemaConfig, StructuredConfig
from .stage import Structured

__all__ = ["SchemaConfig", "Structured", "StructuredConfig"]
