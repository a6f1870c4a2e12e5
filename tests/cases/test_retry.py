"""What another attempt would not mend: one request, and the provider's own error."""

import pytest

from tests.running import shared

from .catalogue import load
from .conftest import Sidecars
from .expect import check
from .policy import setup
from .test_cases import converse
from .upstream import Upstream
from .variants import Case, varied


@pytest.mark.parametrize("status", [401, 403, 404, 413, 422])
def test_what_is_the_requests_fault(status: int, sidecars: Sidecars, provider: Upstream) -> None:
    shared("cases", "open.jsonl")

    def change(case: Case) -> None:
        case["setup"]["upstream"][0]["status"] = status
        case["expect"]["client"]["status"] = status

    case = varied(load()["D01"], change)
    wanted = setup(case["setup"]["policy"], f"{provider.origin}/v1")
    provider.play(case["setup"]["upstream"])
    check(case["expect"], converse(sidecars.get(wanted.policy), provider, case), {})
