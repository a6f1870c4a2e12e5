"""Views: a text read otherwise than it is spelt, with what is found in it acted on in the spelling."""

from .lens import Lens
from .view import Look, Watcher
from .views import Views

__all__ = ["Lens", "Look", "Views", "Watcher"]
