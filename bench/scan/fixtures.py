"""The fixtures as cases: a text, what is to be found in it or that nothing is, and the group it counts in."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.subjects import ROOT

FIXTURES = ROOT.parent / "shared" / "detection"

PREFIXED, SECRETS, CHECKED, PII, INJECTION = (
    "secrets with a known prefix",
    "other secrets",
    "PII with a checksum",
    "other PII",
    "injection",
)
GROUPS = {PREFIXED: "secrets", SECRETS: "secrets", CHECKED: "pii", PII: "pii", INJECTION: "injection"}
Spans = Sequence[tuple[int, int]]

# Families whose values say nothing by themselves: hex or random text that only the words around it tell.
_UNPREFIXED_NAMES = """
    adafruit-api-key adobe-client-id airtable-api-key algolia-api-key alibaba-secret-key asana-client-id
    asana-client-secret atlassian-api-token azure-ad-client-secret beamer-api-token bitbucket-client-id
    bitbucket-client-secret bittrex-access-key bittrex-secret-key cisco-meraki-api-key cloudflare-api-key
    cloudflare-global-api-key codecov-access-token cohere-api-token coinbase-access-token confluent-access-token
    confluent-secret-key contentful-delivery-api-token curl-auth-header curl-auth-user datadog-access-token
    discord-api-token discord-client-id discord-client-secret droneci-access-token dropbox-api-token
    etsy-access-token facebook-access-token facebook-secret fastly-api-token finicity-api-token
    finicity-client-secret finnhub-access-token flickr-access-token freshbooks-access-token generic-api-key
    gitter-access-token hashicorp-tf-password heroku-api-key hubspot-api-key intercom-api-key jfrog-api-key
    jfrog-identity-token kraken-access-token kubernetes-secret-yaml kucoin-access-token kucoin-secret-key
    launchdarkly-access-token linear-client-secret linkedin-client-id linkedin-client-secret lob-api-key
    lob-pub-api-key looker-client-id looker-client-secret mailchimp-api-key mailgun-signing-key
    mattermost-access-token maxmind-license-key messagebird-api-token messagebird-client-id netlify-access-token
    new-relic-user-api-id nuget-config-password nytimes-access-token okta-access-token pkcs12-file plaid-client-id
    plaid-secret-key privateai-api-token rapidapi-access-token sendbird-access-id sendbird-access-token
    sentry-access-token sidekiq-secret sidekiq-sensitive-url snyk-api-token sonar-api-token
    squarespace-access-token sumologic-access-id sumologic-access-token telegram-bot-api-token trello-access-token
    travisci-access-token twitch-api-token twitter-access-secret twitter-access-token twitter-api-key
    twitter-api-secret zendesk-secret-key
    azure_storage basic_auth cloudant discord ibm_cloud_iam ibm_cos_hmac keyword mailchimp softlayer telegram
"""
_UNPREFIXED = frozenset(_UNPREFIXED_NAMES.split())
_CHECKED_NAMES = """
    aba_routing au_abn au_acn au_medicare au_tfn ca_sin certificate_number credit_card crypto de_health_insurance
    de_id_card de_social_security de_tax_id de_vat_id es_nie es_nif fi_personal_identity_code iban in_aadhaar
    it_fiscal_code it_vat_code kr_brn kr_frn kr_rrn ng_nin pl_pesel se_organisationsnummer se_personnummer sg_fin
    sg_uen th_tnin tr_national_id uk_nhs us_npi za_id_number
"""
_CHECKED = frozenset(_CHECKED_NAMES.split())
# Addresses of pages and hosts are no secrets and no personal data here.
_SKIPPED = frozenset(("url", "ip_public"))
# Of LLM Guard's fixtures only those of one scanner are about something the packs look for.
_LLM_GUARD = {"secrets": SECRETS, "prompt_injection": INJECTION}


@dataclass(frozen=True, slots=True)
class Case:
    """`spans` are character offsets of what is to be found; empty where the fixture does not say where."""

    id: str
    group: str
    family: str
    text: str
    positive: bool
    spans: tuple[tuple[int, int], ...]

    @property
    def kind(self) -> str:
        return GROUPS[self.group]

    def values(self) -> list[str]:
        return [self.text[start:end] for start, end in self.spans]


def cases(folder: Path) -> list[Case]:
    """All cases of the folder's fixtures. Raises OSError where one is missing."""
    return [
        *_read(folder / "gitleaks.jsonl", _secret),
        *_read(folder / "detect_secrets.jsonl", _secret),
        *_read(folder / "presidio.jsonl", lambda family: CHECKED if family in _CHECKED else PII),
        *_read(folder / "injection.jsonl", lambda family: INJECTION),
        *_read(folder / "llm_guard.jsonl", lambda family: _LLM_GUARD.get(family, "")),
    ]


def _secret(family: str) -> str:
    return SECRETS if family in _UNPREFIXED else PREFIXED


def _read(path: Path, group_of: Callable[[str], str]) -> Iterator[Case]:
    with path.open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            family = row["detector_family"]
            group = group_of(family)
            if group and row["expect_bool"] is not None and family not in _SKIPPED:
                spans = tuple((start, end) for start, end in row["expect_spans"] or ())
                yield Case(row["id"], group, family, row["text"], row["expect_bool"], spans)


def attacks(folder: Path) -> list[tuple[str, str, str]]:
    """Of each row of the ReDoS corpus its id, its pattern and the text that attacks it."""
    with (folder / "redos.jsonl").open(encoding="utf-8") as lines:
        return [(row["id"], row["pattern"], row["text"]) for row in map(json.loads, lines)]
