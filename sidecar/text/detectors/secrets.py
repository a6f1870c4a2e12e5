"""Keys, tokens and passwords, written from what their issuers say about their formats.

A token ends where its alphabet ends: nothing is asked of the character after it, because in chat that may be
a full stop, a bracket, Markdown or Chinese.
"""

# ruff: noqa: E501, S105 -- a table reads better in long lines, and these are the shapes of secrets, not secrets

from sidecar.text.checks import (
    Check,
    all_of,
    base58check,
    basic_credentials,
    bearer_value,
    has_both_cases,
    has_digit,
    has_three_cases,
    min_entropy,
    openai_shape,
    password_value,
    phrase_value,
    provider_value,
    random_looking,
    secret_value,
    tangled,
    url_value,
    varied,
)
from sidecar.text.detectors.model import LEFT, QUOTE, SPACE, Detector, samples


def _d(
    name: str,
    regex: str,
    source: str,
    yes: tuple[str, ...],
    no: tuple[str, ...],
    check: Check | None = varied,
) -> Detector:
    return Detector(name, "secrets", regex, source, samples(yes), samples(no), check)


def _token(name: str, regex: str, source: str, yes: str, no: str, check: Check | None = varied) -> Detector:
    """A token that may stand anywhere, as its first character is no word character; `yes` and `no` are parted by
    spaces."""
    return _d(name, regex, source, tuple(yes.split()), tuple(no.split()), check)


def _word(name: str, regex: str, source: str, yes: str, no: str, check: Check | None = varied) -> Detector:
    """A token that must not begin inside a word.

    However distinctive its prefix: without this a stream would have to wait at every word that ends in its first
    letter.
    """
    return _token(name, rf"{LEFT}(?P<value>{regex})", source, yes, no, check)


def _exact(name: str, regex: str, source: str, yes: str, no: str, check: Check | None = varied) -> Detector:
    """The same for a token whose length is known: one that goes on is none."""
    regex = rf"{LEFT}(?P<value>{regex})(?:\z|[^A-Za-z0-9_-])"
    return _token(name, regex, source, yes, no, check)


# What stands between a name and its value: `=`, `:`, `=>`, `:=`, `?=`, `.=` and their like, an XML tag's end, or the
# comma of `set("NAME", "value")`; with quotes around either, escaped or not, and perhaps a type before the `=`.
_SIGN = rf"(?:(?::?\s?[a-z]{{3,8}}\??\s{{0,2}})?[:=!?.|]{{0,3}}=>?|[:：＝]|>{SPACE}{{0,8}})"
_IS = rf"(?:{QUOTE},\s{{0,3}}{QUOTE}|(?:{QUOTE})?\]?\s{{0,4}}{_SIGN}\s{{0,4}}@?(?:{QUOTE})?)"
_IS_QUOTED = rf"(?:{QUOTE},\s{{0,3}}{QUOTE}|(?:{QUOTE})?\]?\s{{0,4}}{_SIGN}\s{{0,4}}@?{QUOTE})"
# A value ends at white space or one of `" , } ] \ <` and the backtick, and leaves closing punctuation outside.
_INSIDE, _LAST = r"[!#-+\--;=-\[^_a-|~\x{A1}-\x{24F}]", r"[!#-%+\-/-9=@-\[^_a-{~\x{A1}-\x{24F}]"
_VALUE = rf"(?P<value>{_INSIDE}{{3,}}{_LAST})"

_KEY_NAMES = (
    r"(?i:(?:api|access|secret|auth|app|application|account|master|encryption|signing|session|service|admin|client|bot|"
    r"private|license|storage|deploy|webhook|consumer|subscription|sas|refresh|bearer|oauth|personal)[_. -]?(?:access[_. -]?)?"
    r"(?:key|secret|token)|token|secret|creds?|(?:user|basic)[_-]?auth|authkey|passkey|key_?base|access[_-]?key[_-]?id)"
)
_PASSWORD_NAMES = r"(?i:password|passwd|passphrase|passcode|passwort|contraseña|mot de passe|pwd|pass|pw)"
_PASSWORD_ALSO = "Password|Passwd|Passphrase|Pwd|密码|密碼|パスワード|비밀번호"
# Providers whose keys have no prefix of their own: their name in the variable's is the only sign.
_PROVIDERS = (
    r"(?:(?i:adafruit|adobe|airtable|algolia|alibaba|aliyun|amplitude|artifactory|asana|assemblyai|atlassian|azure|beamer|bitbucket|"
    r"bittrex|cisco|clickhouse|cloudant|cloudflare|codecov|cohere|coinbase|confluent|contentful|datadog|deepgram|discord|"
    r"droneci|dropbox|etsy|facebook|fastly|finicity|finnhub|flickr|freshbooks|gitter|gocardless|heroku|hubspot|ibm|intercom|jenkins|jfrog|jira|"
    r"kraken|kucoin|launchdarkly|linear|linkedin|lob|looker|mailgun|mattermost|meraki|messagebird|mistral|mixpanel|netlify|"
    r"new-?_?relic|nytimes|okta|opsgenie|pagerduty|plaid|rapidapi|rollbar|segment|sendbird|sentry|shodan|snyk|softlayer|sourcegraph|sonar(?:qube)?|"
    r"splunk|spotify|squarespace|sumologic|travis|trello|twilio|twitch|twitter|typeform|unsplash|vonage|wandb|yandex|zendesk)|sumo|Sumo|SUMO)"
)

# Before an option's dash: the text's beginning, or anything but a word, be it an escaped line break.
_DASH = r"(?:\B|\\{1,8}[nrt])"

# The lines of a PEM block may be parted by real newlines, escaped ones, the quotes of joined strings, or the marks of
# a quotation or a diff.
_GAP = r"""(?:[\s"'+,>|]|\\{1,8}[nrt]|%0[AaDd])*"""
_B64 = r"[A-Za-z0-9+/=]"
_END = r"-{4,5} ?END[A-Z0-9 ]{1,50}-{4,5}"
_PEM = (
    r"-{4,5} ?BEGIN(?: [A-Z0-9]{2,12}){0,4} PRIVATE KEY(?: BLOCK)? ?-{4,5}"
    rf"(?:(?:{_GAP}[A-Z][A-Za-z-]{{2,20}}: [ -\[\]-~]+){{0,4}}(?:{_GAP}{_B64}{{16,}})+"
    rf"(?:(?:{_GAP}{_B64}{{1,15}})?{_GAP}{_END})?|[ -,.-~\s]{{1,200}}{_END})"
)
_BODY = "<b64>\n<b64>\n<b24>=="
_ESCAPED = _BODY.replace("\n", "\\n")

# fmt: off
_LLM = (
    _d("openai_key", LEFT + r"(?P<value>sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{16,300}|[A-Za-z0-9]{20,200}))",
       "OpenAI API reference, authentication; T3BlbkFJ is base64 of OpenAI",
       ("sk-proj-<w74>T3BlbkFJ<w74>", "sk-svcacct-<w58>T3BlbkFJ<w58>", "sk-admin-<w58>T3BlbkFJ<w58>", "sk-<a20>T3BlbkFJ<a20>"),
       ("task-<a40>", "sk-<a12>", "sk-" + "x" * 48), openai_shape),
    _exact("anthropic_key", r"sk-ant-(?:api|admin)\d\d-[A-Za-z0-9_-]{93}AA|sk-ant-[b-z][a-z0-9]{2,11}-[A-Za-z0-9_-]{20,200}", "Anthropic docs, API and admin keys",
           "sk-ant-api03-<w93>AA sk-ant-admin01-<w93>AA", "sk-ant-api03-<w8> sk-ant-api03-" + "x" * 60),
    _word("openrouter_key", r"sk-or-v1-[0-9a-f]{64}", "OpenRouter docs, authentication", "sk-or-v1-<h64>", "sk-or-v1-<h20>"),
    _word("langfuse_key", r"sk-lf-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "Langfuse docs, API keys",
           "sk-lf-<h8>-<h4>-<h4>-<h4>-<h12>", "pk-lf-<h8>-<h4>-<h4>-<h4>-<h12>"),
    _word("sk_key", r"sk-[A-Za-z0-9]{1,30}(?:[-_][A-Za-z0-9]{1,80}){1,8}", "keys in OpenAI's style by gateways and proxies",
          "sk-test-<a24> sk-litellm-<a22> sk-live-abcd1234-efgh5678", "sk-fading-circle-container task-run-<a30> sk-some-long-hyphenated-slug", openai_shape),
    _word("groq_key", r"gsk_[A-Za-z0-9]{48,60}", "Groq console", "gsk_<a52>", "gsk_<a20>"),
    _word("xai_key", r"xai-[A-Za-z0-9]{70,120}", "xAI console", "xai-<a80>", "xai-<a20>"),
    _word("cerebras_key", r"csk-[a-z0-9]{40,56}", "Cerebras inference docs", "csk-<l48>", "csk-<l20>"),
    _word("perplexity_key", r"pplx-[A-Za-z0-9]{48,56}", "Perplexity docs", "pplx-<a48>", "pplx-<a20>"),
    _d("huggingface_token", LEFT + r"(?P<value>(?:hf_|api_org_)[A-Za-z0-9]{34})(?:\b|_)", "Hugging Face docs, user access tokens",
       ("hf_<L34>", "api_org_<L34>"), ("half_<L34>", "hf_<L12>", "hf_requiredCharacteristicTypesForDisplayMetadata")),
    _word("replicate_token", r"r8_[A-Za-z0-9]{37}", "Replicate docs", "r8_<a37>", "r8_<a12>"),
    _word("nvidia_key", r"nvapi-[A-Za-z0-9_-]{60,70}", "NVIDIA NGC docs", "nvapi-<w64>", "nvapi-<w20>"),
    _word("together_key", r"tgp_v1_[A-Za-z0-9_-]{43}", "Together docs", "tgp_v1_<w43>", "tgp_v1_<w12>"),
    _word("fireworks_key", r"fw_[A-Za-z0-9]{22,24}", "Fireworks docs", "fw_<a24>", "fw_<a8>", random_looking),
    _word("langsmith_key", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}", "LangSmith docs", "lsv2_pt_<h32>_<h10> lsv2_sk_<h32>_<h10>", "lsv2_pt_<h12>"),
    _word("pinecone_key", r"pcsk_[A-Za-z0-9]{5,6}_[A-Za-z0-9]{63}", "Pinecone docs", "pcsk_<a6>_<a63>", "pcsk_<a6>_<a12>"),
    _word("voyage_key", r"pa-[A-Za-z0-9_-]{43}", "Voyage AI docs", "pa-<w43>", "pa-<w20>", random_looking),
    _word("jina_key", r"jina_[0-9a-f]{32}[A-Za-z0-9_-]{28,34}", "Jina AI docs", "jina_<h32><w28>", "jina_<h12>"),
    _word("tavily_key", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{28,48}", "Tavily docs", "tvly-<a32> tvly-dev-<a32>", "tvly-<a8>"),
    _word("firecrawl_key", r"fc-[0-9a-f]{32}", "Firecrawl docs", "fc-<h32>", "fc-<h12>"),
    _word("elevenlabs_key", r"sk_[0-9a-f]{48}", "ElevenLabs docs", "sk_<h48>", "sk_<h20>"),
    _word("e2b_key", r"e2b_[0-9a-f]{40}", "E2B docs", "e2b_<h40>", "e2b_<h12>"),
    _word("gemini_key", r"AQ\.Ab8RN6[A-Za-z0-9_-]{40,50}", "Google AI Studio, authorisation keys", "AQ.Ab8RN6<w44>", "AQ.Ab8RN6<w8>"),
    _word("bedrock_key", r"ABSK[A-Za-z0-9+/]{100,300}={0,2}|bedrock-api-key-[A-Za-z0-9+/=]{20,}", "Amazon Bedrock docs, API keys",
           "ABSKQmVkcm9ja0FQSUtleS1<b120>= bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t<b60>", "ABSK<b20> bedrock-api-key-x"),
    _word("dify_key", r"(?:app|dataset)-[A-Za-z0-9]{24}", "Dify docs", "app-<a24> dataset-<a24>", "app-<a8> app-somelongservicenamexyzab", has_three_cases),
    _word("browserbase_key", r"bb_live_[A-Za-z0-9_-]{24,40}", "Browserbase docs", "bb_live_<a27>", "bb_live_<a8>"),
)

_CLOUD = (
    _word("aws_access_key", r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}", "AWS IAM docs, unique identifiers",
          "AKIA<r16> ASIA<r16> ABIA<r16> ACCA<r16>", "AKIA<r10> akia<l16> PLAKIA<r16> AKIAXXXXXXXXXXXXXXXX"),
    _d("aws_secret_key",
       LEFT + r"(?i:aws[\w .-]{0,16}(?:secret|key|sk|password)|(?:aws)?secret[_ .-]?(?:access[_ .-]?)?key)" + _IS + r"(?P<value>[A-Za-z0-9/+]{40})",
       "AWS IAM docs, access keys: 40 characters of base64",
       ("aws_secret_access_key = <b40>", "AWS Secret Access Key: <b40>", '"SecretAccessKey": "<b40>"'),
       ("aws_secret_access_key = <h40>", "commit <h40>"), has_three_cases),
    _d("aws_key_pair", r"(?:AKIA|ASIA)[A-Z0-9]{16}" + r"""["']?[\s,:;|/]{1,6}["']?""" + r"(?P<value>[A-Za-z0-9/+]{40})",
       "AWS IAM docs: the secret right after its id, as in a CSV download",
       ("AKIA<r16>,<b40>", "AKIA<r16>:<b40>", "AKIA<r16> / <b40>"), ("AKIA<r16> <h40>", "AKIA<r16>, <b12>"), has_three_cases),
    _d("aws_session_token", "(?:" + LEFT + r"(?i:session[_ -]?token|security[_ -]?token)|S(?:ession|ecurity)Token)" + _IS + r"(?P<value>(?:Fwo|IQo|AQo)[A-Za-z0-9/+=]{60,})", "AWS STS docs",
       ("AWS_SESSION_TOKEN=FwoGZXIvYXdzE<b200>", '"SessionToken": "IQoJb3JpZ2luX2Vj<b200>="'), ("session_token=Fwo<b12>", "FwoGZXIvYXdzE")),
    _exact("google_api_key", r"AIza[A-Za-z0-9_-]{35}", "Google Cloud docs, API keys", "AIza<w35> AIzaSy<w33>", "AIza<w20> AIza" + "x" * 35),
    _word("google_oauth", r"ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{28}", "Google Identity docs, OAuth 2.0", "ya29.a0<w120> GOCSPX-<w28>", "ya29.<w8> GOCSPX-<w12>", None),
    _word("google_refresh_token", r"1//0[A-Za-z0-9_-]{38,110}", "Google Identity docs, OAuth 2.0", "1//0<w60> 1//09<w99>", "1//0<w12>", has_three_cases),
    _d("azure_storage_key", LEFT + r"(?i:AccountKey|SharedAccessKey|AccessKey)=(?P<value>[A-Za-z0-9+/]{42,86}={1,2})", "Azure docs, connection strings",
       ("DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=<b86>==;EndpointSuffix=core.windows.net",
        "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=<b43>="), ("AccountKey=<b12>", "AccountName=shop")),
    _word("azure_client_secret", r"\dQ~[A-Za-z0-9_.~-]{30,33}[A-Za-z0-9_~-]", "Microsoft Entra docs, client secrets: three characters, a digit, Q~",
          "Kx-8Q~<w31> abc.7Q~<w34>", "8Q~<w12> 8Q~" + "x" * 34),
    _d("azure_sas", r"[?&;]sig=(?P<value>[A-Za-z0-9%+/]{40,64}(?:%3[Dd]|=))", "Azure docs, shared access signatures",
       ("https://shop.blob.core.windows.net/c/b?sv=2022-11-02&sig=<b43>%3D", "?sv=2022&sr=b&sig=<b43>="), ("?sig=<b12>", "signature=<b43>")),
    _word("digitalocean_token", r"do[opr]_v1_[0-9a-f]{64}", "DigitalOcean docs", "dop_v1_<h64> doo_v1_<h64> dor_v1_<h64>", "dop_v1_<h20>"),
    _word("heroku_key", r"HRKU-[A-Za-z0-9_-]{36,64}", "Heroku docs, platform API", "HRKU-AA<w58> HRKU-<h8>-<h4>-<h4>-<h4>-<h12>", "HRKU-<w12>"),
    _word("alibaba_key", r"LTAI[A-Za-z0-9]{12,26}", "Alibaba Cloud docs, AccessKey", "LTAI5t<a18> LTAI<a20>", "LTAI<a6> ALTAI<a20>", random_looking),
    _word("tencent_key", r"AKID[A-Za-z0-9]{32}", "Tencent Cloud docs", "AKID<a32>", "AKID<a12>"),
    _word("yandex_key", r"AQVN[A-Za-z0-9_-]{35,38}|YC[A-Za-z0-9_-]{38}|t1\.[A-Za-z0-9_=-]{3,200}\.[A-Za-z0-9_=-]{86,88}", "Yandex Cloud docs",
          "AQVN<w36> YCAJE<w35> t1.<w60>.<w86>", "AQVN<w12> t1.small YC<w12>", has_three_cases),
    _word("scaleway_key", r"SCW[A-Z0-9]{17}", "Scaleway docs", "SCW<u17>", "SCW<u6> SCWXXXXXXXXXXXXXXXXX"),
    _word("cloudflare_origin_key", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}", "Cloudflare docs, origin CA keys", "v1.0-<h24>-<h146>", "v1.0-<h24> v1.0-beta"),
    _word("cloudflare_token", r"cf(?:k|ut|at)_[A-Za-z0-9]{40}[0-9a-f]{8}", "Cloudflare docs, scannable tokens", "cfut_<a40><h8> cfk_<a40><h8>", "cfut_<a20>"),
    _word("vercel_token", r"vc[kaipr]_[A-Za-z0-9]{56}", "Vercel docs", "vck_<a56> vcp_<a56>", "vcp_<a20>"),
    _word("netlify_token", r"nf[opcub]_[A-Za-z0-9]{36}", "Netlify docs", "nfp_<a36>", "nfp_<a12>"),
    _word("flyio_token", r"fo1_[A-Za-z0-9_-]{43}|fm1[ar]_[A-Za-z0-9+/]{80,}={0,3}|fm2_[A-Za-z0-9+/]{80,}={0,3}", "Fly.io docs, access tokens",
          "fo1_<w43> fm1r_<b120> fm2_<b120>==", "fo1_<w12> fm2_<b12>"),
    _word("render_key", r"rnd_[A-Za-z0-9]{28,36}", "Render docs", "rnd_<a32>", "rnd_<a8>", random_looking),
    _word("supabase_key", r"sbp_[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{31}", "Supabase docs, API keys", "sbp_<h40> sb_secret_<w31>", "sbp_<h12> sb_publishable_<w31>"),
    _word("neon_key", r"napi_[a-z0-9]{60,68}", "Neon docs", "napi_<l64>", "napi_<l20>"),
    _word("planetscale_token", r"pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_=.-]{31,63}[A-Za-z0-9_=-]", "PlanetScale docs", "pscale_tkn_<w43> pscale_oauth_<w40> pscale_pw_<w43>", "pscale_tkn_<w8>"),
    _word("mongodb_atlas_secret", r"mdb_sa_sk_[A-Za-z0-9_-]{40}", "MongoDB Atlas docs, service accounts", "mdb_sa_sk_<w40>", "mdb_sa_id_<h24>"),
    _word("cockroach_key", r"CCDB1_[A-Za-z0-9]{22}_[A-Za-z0-9]{40}", "CockroachDB Cloud docs", "CCDB1_<a22>_<a40>", "CCDB1_<a22>"),
    _word("aiven_password", r"AVNS_[A-Za-z0-9_-]{19}", "Aiven docs", "AVNS_<w19>", "AVNS_<w8>"),
    _word("clickhouse_key", r"4b1d[A-Za-z0-9]{38}", "ClickHouse Cloud docs", "4b1d<a38>", "4b1d<h36>", has_three_cases),
    _word("databricks_token", r"dapi[0-9a-f]{32}(?:-\d)?", "Databricks docs", "dapi<h32> dapi<h32>-2", "dapi<h12>"),
    _word("tailscale_key", r"tskey-(?:auth|api|client|scim|webhook)-[A-Za-z0-9]{8,24}-[A-Za-z0-9]{16,48}", "Tailscale docs", "tskey-auth-<a16>-<a32> tskey-api-<a16>-<a32>", "tskey-auth-x"),
    _d("gcp_private_key_id", LEFT + r"(?i:private_key_id)" + _IS + r"(?P<value>[0-9a-f]{40})", "Google Cloud docs, service account keys",
       ('"type": "service_account", "private_key_id": "<h40>"', "private_key_id=<h40>"), ("private_key_id=<h12>",)),
)

_CODE_HOSTS = (
    _word("github_token", r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}|github_pat_\w{82}", "GitHub docs, token formats",
           "ghp_<a36> gho_<a36> ghu_<a36> ghs_<a36> ghr_<a76> github_pat_<a22>_<a59>", "ghp_<a20> ghx_<a36> ghp_" + "x" * 36),
    _word("gitlab_token", r"glpat-[A-Za-z0-9_-]{20,300}(?:\.[0-9a-z]{2}[0-9a-z]{7})?", "GitLab docs, token prefixes", "glpat-<w20> glpat-<w27>.01<l7>", "glpat-<w8> glpat-" + "x" * 20),
    _exact("gitlab_trigger_token", r"glptt-[A-Za-z0-9_-]{40}", "GitLab docs, token prefixes", "glptt-<h40>", "glptt-<h12>"),
    _word("gitlab_deploy_token", r"gldt-[A-Za-z0-9_-]{20,50}", "GitLab docs, token prefixes", "gldt-<w20>", "gldt-<w8>"),
    _exact("gitlab_runner_token", r"glrtr?-(?:t\d_)?[A-Za-z0-9_-]{20,300}(?:\.[0-9a-z]{2}[0-9a-z]{7})?|GR1348941[A-Za-z0-9_-]{20,50}", "GitLab docs, token prefixes",
           "glrt-<w20> glrt-t1_<w27>.01<l7> GR1348941<w20>", "glrt-<w8> GR1348941"),
    _word("gitlab_job_token", r"glcbt-(?:[0-9a-f]{1,5}_)?[A-Za-z0-9_-]{20,300}", "GitLab docs, token prefixes", "glcbt-<w20> glcbt-64_<w20>", "glcbt-<w8>"),
    _word("gitlab_feed_token", r"glft-[A-Za-z0-9_-]{20,80}", "GitLab docs, token prefixes", "glft-<w20>", "glft-<w8>"),
    _exact("gitlab_scim_token", r"glsoat-[A-Za-z0-9_-]{20,50}", "GitLab docs, token prefixes", "glsoat-<w20>", "glsoat-<w8>"),
    _exact("gitlab_mail_token", r"glimt-[A-Za-z0-9_-]{25}", "GitLab docs, token prefixes", "glimt-<w25>", "glimt-<w8>"),
    _word("gitlab_agent_token", r"glagent-[A-Za-z0-9_-]{50,200}", "GitLab docs, token prefixes", "glagent-<w50>", "glagent-<w8>"),
    _exact("gitlab_oauth_secret", r"gloas-[A-Za-z0-9_-]{64}", "GitLab docs, token prefixes", "gloas-<h64>", "gloas-<w8>"),
    _word("gitlab_flags_token", r"glffct-[A-Za-z0-9_-]{20,50}", "GitLab docs, token prefixes", "glffct-<w20>", "glffct-<w8>"),
    _d("gitlab_session", r"_gitlab_session=(?P<value>[0-9a-z]{32})", "GitLab docs", ("Cookie: _gitlab_session=<h32>", "_gitlab_session=<l32>"), ("_gitlab_session=<h8>",)),
    _word("atlassian_token", r"AT(?:ATT3|CTT3)[A-Za-z0-9_=-]{100,300}", "Atlassian docs, API tokens", "ATATT3<w186> ATCTT3<w180>", "ATATT3<w20>"),
    _word("bitbucket_password", r"ATBB[A-Za-z0-9_=-]{28,60}", "Bitbucket docs, app passwords", "ATBB<a32>", "ATBB<a8>"),
    _word("sourcegraph_token", r"sgp_(?:(?:[0-9A-Fa-f]{16}|local)_)?[0-9A-Fa-f]{40}", "Sourcegraph docs", "sgp_<h40> sgp_<h16>_<h40> sgp_local_<h40>", "sgp_<h12>"),
    _word("linear_key", r"lin_(?:api_[A-Za-z0-9]{40}|oauth_[0-9a-f]{64})", "Linear docs", "lin_api_<a40> lin_oauth_<h64>", "lin_api_<a8>"),
)

_BUILD = (
    _word("npm_token", r"npm_[A-Za-z0-9]{36}", "npm docs, access tokens", "npm_<a36>", "npm_<a12> npm_config_registry"),
    _word("pypi_token", r"pypi-AgE[A-Za-z0-9_-]{50,}", "PyPI help, API tokens: a macaroon", "pypi-AgEIcHlwaS5vcmcCJ<w120> pypi-AgENdGVzdC5weXBpLm9yZwIk<w120>", "pypi-AgE<w8> pypi-server"),
    _word("rubygems_key", r"rubygems_[0-9a-f]{48}", "RubyGems guides", "rubygems_<h48>", "rubygems_<h12>"),
    _word("dockerhub_token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{27,40}", "Docker docs, access tokens", "dckr_pat_<w27> dckr_oat_<w32>", "dckr_pat_<w8>"),
    _word("nuget_key", r"oy2[a-z0-9]{43}", "NuGet docs", "oy2<l43>", "oy2<l12>"),
    _word("crates_token", r"cio[A-Za-z0-9]{32}", "crates.io docs", "cio<a32>", "cio<a12> ciodeveloper", has_three_cases),
    _word("clojars_token", r"CLOJARS_[A-Za-z0-9]{60}", "Clojars docs", "CLOJARS_<h60>", "CLOJARS_<h12>"),
    _word("artifactory_key", r"A(?:KC[A-Za-z0-9]{10,90}|P[0-9A-F][A-Za-z0-9]{8,90})", "JFrog docs, API keys and encrypted passwords",
          "AKCp8<a68> AP6<a30>", "AP6<a4> APARTMENTBUILDING AKCE", has_three_cases),
    _word("artifactory_reference_token", r"cmVmd[A-Za-z0-9]{59}", "JFrog docs, reference tokens", "cmVmdGtuO<a55>", "cmVmd<a12>"),
    _word("packagist_token", r"packagist_[a-z]{2,4}_[0-9a-f]{60,76}", "Packagist docs", "packagist_ort_<h68>", "packagist_ort_<h8>"),
    _word("circleci_token", r"CCI(?:PAT|PRJ)_[A-Za-z0-9]{22}_[0-9a-f]{40}", "CircleCI docs", "CCIPAT_<a22>_<h40> CCIPRJ_<a22>_<h40>", "CCIPAT_<a22>"),
    _word("buildkite_token", r"bk(?:u?a|at|ct)_[0-9a-f]{40}|bk[ac]t_[A-Za-z0-9_-]{30,80}", "Buildkite docs", "bkua_<h40> bkct_<w50>", "bkua_<h8>"),
    _word("octopus_key", r"API-[A-Z0-9]{25,32}", "Octopus Deploy docs", "API-<u26> API-<u32>", "API-<u6> API-GATEWAYLONGSERVICENAMEXYZAB", has_digit),
    _word("harness_token", r"(?:pat|sat)\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}", "Harness docs", "pat.<w22>.<h24>.<a20> sat.<w22>.<h24>.<a20>", "pat.<w22>"),
    _word("prefect_token", r"pn[ub]_[A-Za-z0-9]{36}", "Prefect docs", "pnu_<l36> pnb_<a36>", "pnu_<l8>"),
    _word("sonar_token", r"sq[uap]_[0-9a-f]{40}", "SonarQube docs", "squ_<h40> sqa_<h40> sqp_<h40>", "squ_<h8>"),
    _word("dependency_track_key", r"odt_[A-Za-z0-9]{8}_[A-Za-z0-9]{32}|odt_[A-Za-z0-9]{32}", "Dependency-Track docs", "odt_<a32> odt_<a8>_<a32>", "odt_<a8>"),
    _word("terraform_token", r"atlasv1\.[A-Za-z0-9_=-]{60,70}", "HCP Terraform docs: fourteen characters, then atlasv1",
          "atlasv1.<w67> .atlasv1.<w60>", "atlasv1.<w12>"),
    _word("pulumi_token", r"pul-[0-9a-f]{40}", "Pulumi docs", "pul-<h40>", "pul-<h12>"),
    _word("vault_token", r"hv[sbr]\.[A-Za-z0-9_-]{24,300}", "HashiCorp Vault docs, tokens", "hvs.<w95> hvb.<w150> hvr.<w95>", "hvs.<w8> hvs." + "x" * 90),
    _word("vault_legacy_token", r"s\.[A-Za-z0-9]{24}", "HashiCorp Vault docs, tokens before 1.10", "s.<a24>", "s.<a8> s.AcceptanceTimeoutSeconds s." + "x" * 24, has_three_cases),
    _word("doppler_token", r"dp\.(?:pt|ct|sa|said|scim|audit|st(?:\.[a-z0-9_-]{2,35})?)\.[A-Za-z0-9]{40,44}", "Doppler docs", "dp.pt.<a43> dp.st.dev.<a43>", "dp.pt.<a8>"),
    _word("onepassword_token", r"ops_eyJ[A-Za-z0-9+/_-]{100,}={0,3}", "1Password docs, service accounts", "ops_eyJ<b260> ops_eyJ<w300>", "ops_eyJ<b8> ops_eyJ" + "x" * 200),
    _word("onepassword_secret_key", r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}", "1Password docs, secret key", "A3-<u6>-<u11>-<u5>-<u5>-<u5> A3-<u6>-<u6>-<u5>-<u5>-<u5>-<u5>", "A3-<u6>"),
    _word("openshift_token", r"sha256~[A-Za-z0-9_-]{43}", "OpenShift docs", "sha256~<w43>", "sha256~<w12> sha256:<h64>"),
    _word("rancher_token", r"(?:token|kubeconfig)-[a-z0-9-]{5,40}:[a-z0-9]{54}", "Rancher docs", "token-<l5>:<l54> kubeconfig-user-<l5>:<l54>", "token-<l5>:<l8>"),
    _word("age_key", r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}", "age specification", "AGE-SECRET-KEY-1<r58>".replace("<r58>", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE") + " AGE-SECRET-KEY-1" + "GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQP", "AGE-SECRET-KEY-1QPZRY", None),
    _word("infracost_key", r"ico-[A-Za-z0-9]{32}", "Infracost docs", "ico-<a32>", "ico-<a8> ico-<h32>", has_both_cases),
    _word("snyk_token", r"snyk_(?:uat|sat)\.[0-9a-f]{8}\.[A-Za-z0-9_-]{40,}(?:\.[A-Za-z0-9_-]{10,})*", "Snyk docs", "snyk_uat.<h8>.<w80> snyk_sat.<h8>.<w80>", "snyk_uat.<h8>"),
    _d("youtrack_token", LEFT + r"perm[:-](?P<value>[A-Za-z0-9+/=_-]{4,80}\.[A-Za-z0-9+/=_-]{4,40}\.[A-Za-z0-9]{30})", "JetBrains Hub docs, permanent tokens", ("perm:<b12>.<b8>.<a30>", "perm-<b12>=.<b8>=.<a30>"), ("perm:read", "perm-<b12>")),
)

_CHAT = (
    _word("slack_token", r"xox[abcopsr]-[A-Za-z0-9-]{14,120}|xox[ar]-(?:\d-)?[A-Za-z0-9]{10,48}|xoxd-[A-Za-z0-9%/+-]{20,160}|xoxe(?:\.xox[bp])?-\d-[A-Za-z0-9]{20,200}|xapp-\d{1,2}-[A-Za-z0-9-]{20,120}", "Slack docs, token types",
           "xoxb-<d12>-<d12>-<a24> xoxp-<d12>-<d12>-<d12>-<h32> xapp-1-A<u10>-<d13>-<h64> xoxe.xoxp-1-<a163> xoxe-1-<a146>", "xoxb-short xoxy-<d12>-<a24> xoxb-xxxxxxxxxxxx-xxxxxxxx", random_looking),
    _word("slack_webhook", r"(?:https://)?hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_+-]{20,120}", "Slack docs, incoming webhooks",
           "https://hooks.slack.com/services/T<u10>/B<u10>/<a24> hooks.slack.com/workflows/T<u10>/A<u10>/<d18>/<a24>", "https://hooks.slack.com/services/ https://api.slack.com/methods/chat.postMessage"),
    _word("discord_token", r"[MNO][DTjz][AEIMQUYcgk][A-Za-z0-9_-]{21,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}", "Discord docs: the first part is the id in base64",
          "MTk4NjIyNDgzNDcxOTI1MjQ4.<w6>.<w27> NzkyNzE1NDU0MTk2MDg4ODQy.<w6>.<w38>", "MTk4NjIyNDgzNDcxOTI1MjQ4 NDA.<w6>.<w27>"),
    _word("discord_webhook", r"(?:https://)?discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{17,20}/[A-Za-z0-9_-]{60,80}", "Discord docs, webhooks", "https://discord.com/api/webhooks/<d18>/<w68> discordapp.com/api/webhooks/<d19>/<w68>", "discord.com/api/webhooks/<d18>"),
    _word("telegram_bot_token", r"\d{5,16}:A[A-Za-z0-9_-]{34}", "Telegram Bot API docs", "110201543:AA<w33> <d10>:AA<w33>", "<d10>:AA<w8> 12:30:45"),
    _word("teams_webhook", r"webhook\.office\.com/webhookb2/[A-Za-z0-9@/-]{80,240}", "Microsoft Teams docs, incoming webhooks",
           "https://shop.webhook.office.com/webhookb2/<h8>-<h4>-<h4>-<h4>-<h12>@<h8>-<h4>-<h4>-<h4>-<h12>/IncomingWebhook/<h32>/<h8>-<h4>-<h4>-<h4>-<h12>", "webhook.office.com/webhookb2/x"),
    _word("twilio_key", r"(?:SK|AC)[0-9a-f]{32}", "Twilio docs, API keys and account SIDs", "SK<h32> AC<h32>", "SK<h12> TASK<h32>"),
    _word("facebook_token", r"EAA[A-Za-z0-9]{80,400}|\d{15,16}\|[A-Za-z0-9_-]{27}", "Meta docs, access tokens", "EAA<a180> <d15>|<w27>", "EAA<a20> <d15>|x", random_looking),
    _d("twitter_bearer", LEFT + r"A{18,24}(?P<value>[A-Za-z0-9%]{60,110})", "X API docs, bearer tokens", ("AAAAAAAAAAAAAAAAAAAAA<a30>%<a60>", "AAAAAAAAAAAAAAAAAAAAAM<a20>%3D<a60>"), ("AAAAAAAAAAAAAAAAAAAAAA", "A" * 90), has_three_cases),
    _word("intercom_token", r"dG9rO[A-Za-z0-9+/]{54,60}={0,2}", "Intercom docs: base64 of tok:", "dG9rOj<b54>=", "dG9rOj<b12>"),
    _word("zapier_webhook", r"(?:https://)?hooks\.zapier\.com/hooks/catch/\d{4,10}/[a-z0-9]{5,12}", "Zapier docs", "https://hooks.zapier.com/hooks/catch/<d7>/<l7> hooks.zapier.com/hooks/catch/<d6>/<l7>", "hooks.zapier.com/hooks/catch/", None),
)

_PAYMENT = (
    _word("stripe_key", r"(?:sk|rk)_(?:test|live|prod)_[A-Za-z0-9]{10,250}", "Stripe docs, API keys", "sk_live_<a24> rk_test_<a99> sk_test_51<a97>", "pk_live_<a24> task_test_<a24> sk_live_<a4>"),
    _word("stripe_webhook_secret", r"whsec_[A-Za-z0-9+/=]{24,80}", "Stripe docs, webhooks; Standard Webhooks", "whsec_<a32> whsec_<b44>", "whsec_<a8>"),
    _word("square_token", r"EAAA[A-Za-z0-9_-]{22,60}|sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,60}", "Square docs", "EAAA<w60> sq0atp-<w22> sq0csp-<w43>", "EAAA<w8> sq0atp-<w8>"),
    _word("braintree_token", r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}", "PayPal Braintree docs", "access_token$production$<l16>$<h32> access_token$sandbox$<l16>$<h32>", "access_token$production$x"),
    _word("razorpay_key", r"rzp_(?:live|test)_[A-Za-z0-9]{14,24}", "Razorpay docs", "rzp_live_<a14> rzp_test_<a14>", "rzp_live_<a4>"),
    _word("flutterwave_key", r"FLW(?:PUBK|SECK)(?:_TEST|_PROD)?-[0-9a-z]{12,40}(?:-X)?", "Flutterwave docs", "FLWSECK_TEST-<h32>-X FLWSECK_TEST-<h12> FLWPUBK_TEST-<h32>-X", "FLWSECK_TEST-x"),
    _word("shippo_token", r"shippo_(?:live|test)_[0-9a-f]{40}", "Shippo docs", "shippo_live_<h40> shippo_test_<h40>", "shippo_live_<h8>"),
    _word("easypost_key", r"EZ[AT]K[A-Za-z0-9]{54}", "EasyPost docs", "EZAK<a54> EZTK<a54>", "EZAK<a12>"),
    _word("plaid_token", r"access-(?:sandbox|development|production)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "Plaid docs", "access-sandbox-<h8>-<h4>-<h4>-<h4>-<h12>", "access-sandbox-mode"),
    _word("gocardless_token", r"(?:live|sandbox)_[A-Za-z0-9_=-]{40}", "GoCardless docs", "live_<w40> sandbox_<w40>", "live_<w8> live_" + "demo_of_the_new_product_for_our_customers", random_looking),
    _word("test_or_live_key", r"(?:live|test)_(?:pub_)?[A-Za-z0-9]{30,64}", "Mollie, Lob and Chargebee docs", "live_<a30> test_<h35> live_pub_<h31>", "test_<a8> test_" + "s" * 40, random_looking),
    _word("duffel_token", r"duffel_(?:test|live)_[A-Za-z0-9_=-]{40,44}", "Duffel docs", "duffel_test_<w43> duffel_live_<w43>", "duffel_test_<w8>"),
    _word("paddle_key", r"pdl_(?:live|sdbx)_apikey_[a-z0-9]{26}_[A-Za-z0-9]{22}_[A-Za-z0-9]{3}", "Paddle docs", "pdl_live_apikey_<l26>_<a22>_<a3>", "pdl_live_apikey_x"),
    _word("xendit_key", r"xnd_(?:production|development)_[A-Za-z0-9=_+/-]{40,100}", "Xendit docs", "xnd_production_<a60> xnd_development_<a60>", "xnd_production_<a8>"),
    _word("midtrans_key", r"Mid-server-[A-Za-z0-9_-]{24}", "Midtrans docs", "SB-Mid-server-<w24> Mid-server-<w24>", "Mid-server-<w8>"),
    _word("cashfree_key", r"cfsk_ma_(?:prod|test)_[0-9a-f]{32}_[0-9a-f]{8}", "Cashfree docs", "cfsk_ma_prod_<h32>_<h8> cfsk_ma_test_<h32>_<h8>", "cfsk_ma_prod_<h8>"),
    _word("mercadopago_token", r"APP_USR-\d{13,19}-\d{6}-[0-9a-f]{32}-\d{6,12}", "Mercado Pago docs", "APP_USR-<d16>-<d6>-<h32>-<d9>", "APP_USR-<d16>"),
    _word("polar_token", r"polar_(?:oat|pat|whs|rcs|at_[uo]|rt_[uo])_[A-Za-z0-9]{32,48}", "Polar docs", "polar_oat_<a43> polar_pat_<a43>", "polar_oat_<a8>"),
    _word("adyen_key", r"AQE[a-z][A-Za-z0-9+/=-]{80,300}", "Adyen docs", "AQEyhmfuXNWTK0Qc+<b100> AQErhmfuXNWTK<b120>", "AQEy<b12>"),
    _word("shopify_token", r"shp(?:at|ca|pa|ss|tka|ua)_[0-9a-fA-F]{32}", "Shopify docs", "shpat_<h32> shpca_<h32> shppa_<h32> shpss_<h32>", "shpat_<h8>"),
)

_MAIL = (
    _word("sendgrid_key", r"SG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50}|SG\.[A-Za-z0-9_=.-]{66}", "Twilio SendGrid docs", "SG.<w22>.<w43>", "SG.<w22> MSG.<w22>.<w43>"),
    _word("mailgun_key", r"(?:pub)?key-[0-9a-f]{32}|[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}", "Mailgun docs", "key-<h32> pubkey-<h32> <h32>-<h8>-<h8>", "key-<h8> monkey-<h32> <h32>"),
    _word("mailchimp_key", r"[0-9a-f]{32}-us\d{1,2}", "Mailchimp docs", "<h32>-us12 <h32>-us6", "<h32> <h8>-us12"),
    _word("brevo_key", r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}|xsmtpsib-[0-9a-f]{64}-[A-Za-z0-9]{16}", "Brevo docs", "xkeysib-<h64>-<a16> xsmtpsib-<h64>-<a16>", "xkeysib-<h8>"),
    _word("resend_key", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,26}", "Resend docs", "re_<a8>_<a24>", "re_<a8> core_<a8>_<a24> re_validate_someveryverylongname", has_three_cases),
    _word("klaviyo_key", r"pk_[0-9a-f]{34}", "Klaviyo docs", "pk_<h34>", "pk_<h8>"),
    _word("mandrill_key", r"md-[A-Za-z0-9_-]{22}", "Mailchimp Transactional docs", "md-<w22>", "md-<w8> cmd-<w22> md-some-long-class-name-ab", has_both_cases),
    _word("mailersend_key", r"mlsn\.[0-9a-f]{64}", "MailerSend docs", "mlsn.<h64>", "mlsn.<h8>"),
    _word("zoho_token", r"1000\.[0-9a-f]{32}\.[0-9a-f]{32}", "Zoho docs", "1000.<h32>.<h32>", "1000.<h8>"),
)

_OBSERVABILITY = (
    _word("newrelic_key", r"NRAK-[A-Za-z0-9]{27}|NRII-[A-Za-z0-9_-]{32}|NRJS-[0-9a-f]{19}", "New Relic docs", "NRAK-<u27> NRII-<w32> NRJS-<h19>", "NRAK-<u8>"),
    _word("grafana_token", r"glsa_[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}|glc_[A-Za-z0-9+/]{32,400}={0,3}|eyJrIjoi[A-Za-z0-9+/]{60,400}={0,3}", "Grafana docs",
          "glsa_<a32>_<h8> glc_eyJ<b120> eyJrIjoi<b90>==", "glsa_<a8> glc_x"),
    _word("sentry_token", r"sntryu_[0-9a-f]{64}|sntrys_eyJ[A-Za-z0-9+/=_-]{80,}", "Sentry docs", "sntryu_<h64> sntrys_eyJpYXQiO<b120>_<w43>", "sntryu_<h8> sntrys_eyJ"),
    _d("sentry_dsn", LEFT + r"https://(?P<value>[0-9a-f]{32}(?::[0-9a-f]{32})?)@[A-Za-z0-9.-]{1,60}/\d{1,20}", "Sentry docs, DSN", ("https://<h32>@o123.ingest.sentry.io/456", "https://<h32>:<h32>@sentry.example.com/7"), ("https://o123.ingest.sentry.io/456",)),
    _word("dynatrace_token", r"dt0[cs]\d{2}\.[A-Z0-9a-z]{24}\.[A-Z0-9a-z]{64}", "Dynatrace docs", "dt0c01.<u24>.<u64> dt0s01.<u24>.<u64>", "dt0c01.<u24>"),
    _word("honeycomb_key", r"hc[a-z]ik_[a-z0-9]{58}", "Honeycomb docs", "hcaik_<l58> hcxik_<l58>", "hcaik_<l8>"),
    _word("axiom_token", r"xa[pia]t-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "Axiom docs", "xaat-<h8>-<h4>-<h4>-<h4>-<h12>", "xaat-<h8>"),
    _word("posthog_key", r"ph[xs]_[A-Za-z0-9]{40,50}", "PostHog docs", "phx_<a43>", "phx_<a8> phc_<a43>"),
    _word("launchdarkly_key", r"(?:api|sdk|mob)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "LaunchDarkly docs", "api-<h8>-<h4>-<h4>-<h4>-<h12> sdk-<h8>-<h4>-<h4>-<h4>-<h12>", "api-<h8>"),
    _word("statsig_secret", r"secret-[A-Za-z0-9]{43}", "Statsig docs", "secret-<a43>", "secret-<a8>", random_looking),
    _word("coralogix_key", r"cxt[ph]_[A-Za-z0-9]{30}", "Coralogix docs", "cxtp_<a30>", "cxtp_<a8>"),
    _word("elastic_key", r"essu_[A-Za-z0-9+/_-]{40,120}={0,2}", "Elastic Cloud docs", "essu_<b80>", "essu_<b8>"),
)

_SERVICES = (
    _word("notion_token", r"ntn_\d{11}[A-Za-z0-9]{35}|secret_[A-Za-z0-9]{43}", "Notion docs", "ntn_<d11><a35> secret_<a43>", "ntn_<d11> secret_<a8>", random_looking),
    _word("postman_key", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}", "Postman docs", "PMAK-<h24>-<h34>", "PMAK-<h24>"),
    _word("airtable_token", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}", "Airtable docs", "pat<a14>.<h64>", "pat<a14> path.<h64>"),
    _word("asana_token", r"[12]/\d{13,20}(?:/\d{13,20})?:[0-9a-f]{32}", "Asana docs", "1/<d16>:<h32> 2/<d16>/<d16>:<h32>", "1/<d16> 1/2:30"),
    _word("figma_token", r"fig[dopru]_[A-Za-z0-9_-]{38,52}", "Figma docs", "figd_<w40>", "figd_<w8> figo_x"),
    _word("contentful_token", r"CFPAT-[A-Za-z0-9_-]{43}", "Contentful docs", "CFPAT-<w43>", "CFPAT-<w8>"),
    _word("hubspot_token", r"pat-(?:na|eu|ap)\d-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "HubSpot docs", "pat-na1-<h8>-<h4>-<h4>-<h4>-<h12>", "pat-na1-x"),
    _word("salesforce_token", r"00D[A-Za-z0-9]{12,15}![A-Za-z0-9._]{59,129}[A-Za-z0-9_]", "Salesforce docs, session ids", "00D<a12>!<a96>", "00D<a12>"),
    _word("dropbox_token", r"sl\.(?:u\.)?[A-Za-z0-9_-]{130,}", "Dropbox docs", "sl.<w135> sl.u.<w200>", "sl.<w12>"),
    _word("okta_token", r"00[A-Za-z0-9_-]{40}", "Okta docs", "00<a40> 00<w40>", "00<a12> 00" + "0" * 38 + "aB", all_of(has_three_cases, min_entropy(4.0))),
    _word("stytch_secret", r"secret-(?:live|test)-[A-Za-z0-9_-]{36}=", "Stytch docs", "secret-live-<w36>= secret-test-<w36>=", "secret-live-<w8>"),
    _word("jumpcloud_key", r"jca_[A-Za-z0-9]{36}", "JumpCloud docs", "jca_<a36>", "jca_<a8>"),
    _word("adobe_secret", r"p8e-[A-Za-z0-9-]{32}", "Adobe Developer docs", "p8e-<h32> p8e-<a32>", "p8e-<a8>"),
    _word("mapbox_token", r"[sp]k\.[A-Za-z0-9_-]{60,200}\.[A-Za-z0-9_-]{22}", "Mapbox docs, access tokens", "sk.eyJ1Ijoi<w60>.<w22> pk.eyJ1Ijoi<w60>.<w22>", "sk.eyJ1x task.<w60>.<w22>"),
    _word("typeform_token", r"tfp_[A-Za-z0-9_.=-]{59}", "Typeform docs", "tfp_<w59>", "tfp_<w8>"),
    _word("frameio_token", r"fio-u-[A-Za-z0-9_=-]{64}", "Frame.io docs", "fio-u-<w64>", "fio-u-<w8>"),
    _word("readme_key", r"rdme_[a-z0-9]{70}", "ReadMe docs", "rdme_<l70>", "rdme_<l8>"),
    _word("beamer_token", r"b_[A-Za-z0-9_=-]{44}", "Beamer docs", "b_<w44>", "b_<w8> sub_<w44>", random_looking),
    _word("settlemint_token", r"sm_[aps]at_[A-Za-z0-9]{16}", "SettleMint docs", "sm_aat_<a16> sm_pat_<a16> sm_sat_<a16>", "sm_aat_<a4>"),
    _word("scalingo_token", r"tk-us-[A-Za-z0-9_-]{48}", "Scalingo docs", "tk-us-<w48>", "tk-us-<w8>"),
    _word("defined_token", r"dnkey-[A-Za-z0-9_=-]{26}-[A-Za-z0-9_=-]{52}", "Defined Networking docs", "dnkey-<w26>-<w52>", "dnkey-<w8>"),
    _word("authress_key", r"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}", "Authress docs", "sc_<l10>.<l4>.acc_<l10>.<w60>", "sc_<l10>.<l4>"),
    _word("intra42_secret", r"s-s4t2(?:ud|af)-[0-9a-f]{64}", "42 API docs", "s-s4t2ud-<h64> s-s4t2af-<h64>", "s-s4t2ud-<h8>"),
    _d("maxmind_key", r"_(?P<value>[A-Za-z0-9]{29}_mmk)", "MaxMind docs: six characters and an underscore before it", ("Ab3dE6_<a29>_mmk", "Xy7zW8_<a29>_mmk"), ("<a8>_mmk",)),
    _d("sumologic_id", "(?:" + LEFT + r"(?i:sumo)|Sumo)[\w.-]{0,20}" + _IS + r"(?P<value>su[A-Za-z0-9]{12})", "Sumo Logic docs", ("sumo_access_id=su<a12>", "sumoToken: su<a12>"), ("sumo_id=su<a4>", "sumo: subscriptions"), has_both_cases),
    _word("pubnub_secret", r"sec-c-[A-Za-z0-9]{40,52}", "PubNub docs", "sec-c-<a48>", "sec-c-<a8>"),
    _word("onesignal_key", r"os_v2_(?:app|org)_[a-z2-7]{40,120}", "OneSignal docs", "os_v2_app_<n60> os_v2_org_<n60>", "os_v2_app_<n8>"),
    _d("firebase_server_key", r"AAAA[A-Za-z0-9_-]{7}:(?P<value>[A-Za-z0-9_-]{134,140})", "Firebase docs, legacy server keys", ("AAAA<w7>:<w140>", "key=AAAA<w7>:<w134>"), ("AAAA<w7>:<w8>",)),
    _word("trello_token", r"ATTA[0-9a-f]{56,72}[0-9A-F]{0,8}", "Trello docs", "ATTA<h64> ATTA<h60>", "ATTA<h8>"),
    _word("coinbase_key_name", r"organizations/[0-9a-f-]{36}/apiKeys/[0-9a-f-]{36}", "Coinbase Developer Platform docs", "organizations/<h8>-<h4>-<h4>-<h4>-<h12>/apiKeys/<h8>-<h4>-<h4>-<h4>-<h12>", "organizations/acme/apiKeys"),
    _word("sanity_token", r"sk[A-Za-z0-9]{80,180}", "Sanity docs", "sk<a80> sk<a178>", "sk<a20>", has_three_cases),
    _word("metabase_key", r"mb_[A-Za-z0-9+/]{43}=", "Metabase docs", "mb_<b43>=", "mb_<b8>="),
    _word("freemius_key", r"sk_[A-Za-z0-9+/_-]{29}", "Freemius docs", "sk_<a29>", "sk_<a8> sk_" + "s" * 29, has_three_cases),
    _word("svix_key", r"(?:test)?sk_[A-Za-z0-9_-]{31}\.(?:us|eu|in)", "Svix docs", "testsk_<w31>.us sk_<w31>.eu", "testsk_<w8>"),
)

_KEYS = (
    _d("private_key", _PEM, "RFC 7468 and OpenSSH, PEM blocks; RFC 4716; RFC 4880, armour",
       (f"-----BEGIN RSA PRIVATE KEY-----\n{_BODY}\n-----END RSA PRIVATE KEY-----", f"-----BEGIN PRIVATE KEY-----\\n{_ESCAPED}\\n-----END PRIVATE KEY-----",
        "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,<H32>\n\n<b64>\n<b20>", "-----BEGIN PRIVATE KEY-----\nnot base64 at all\n-----END PRIVATE KEY-----", "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n<b64>\n<b40>",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n<b64>\n<b40>\n=<b4>\n-----END PGP PRIVATE KEY BLOCK-----"),
       ("-----BEGIN PRIVATE KEY-----", "-----BEGIN PUBLIC KEY-----\n<b64>\n-----END PUBLIC KEY-----", "-----BEGIN CERTIFICATE-----\n<b64>\n-----END CERTIFICATE-----"), None),
    _word("private_key_base64", r"LS0tLS1CRUdJTi(?:BQUklWQVRFIEtFWS|BSU0EgUFJJVkFURSBLRVk|BFQyBQUklWQVRFIEtFWS|BPUEVOU1NIIFBSSVZBVEUgS0VZ|BFTkNSWVBURUQgUFJJVkFURSBLRVk|BEU0EgUFJJVkFURSBLRVk)[A-Za-z0-9+/=]*",
           "RFC 7468 in base64, as in kubeconfig files", "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlF<b200> LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1JSUV2<b200>==", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t<b40>", None),
    _d("putty_key", rf"Private-Lines: \d{{1,3}}(?:{_GAP}{_B64}{{16,64}})+(?:(?:{_GAP}{_B64}{{1,15}})?{_GAP}Private-(?:MAC|Hash): [0-9a-f]{{40,64}})?", "PuTTY manual, private key files",
       ("PuTTY-User-Key-File-2: ssh-rsa\nEncryption: none\nComment: key\nPublic-Lines: 1\n<b64>\nPrivate-Lines: 2\n<b64>\n<b12>\nPrivate-MAC: <h40>",
        "Private-Lines: 1\n<b48>\nPrivate-MAC: <h64>"), ("PuTTY-User-Key-File-2: ssh-rsa", "Private-Lines: 4"), None),
    _d("jwk_private", r'\\{0,8}"kty\\{0,8}"\s?:\s?\\{0,8}"(?:RSA|EC|OKP|oct)\\{0,8}"[ -z|~\s]{0,400}?"[dk]\\{0,8}"\s?:\s?\\{0,8}"(?P<value>[A-Za-z0-9_-]{16,})', "RFC 7517, JSON web keys",
       ('{"kty":"EC","crv":"P-256","d":"<w43>"}', '{"kty": "oct", "k": "<w43>"}'), ('{"kty":"EC","crv":"P-256","x":"<w43>"}',)),
    _d("wireguard_key", r"(?i:private_?key|preshared_?key)\s?=\s?(?P<value>[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)", "WireGuard manual, wg(8)", ("PrivateKey = <b42>A=", "PresharedKey=<b42>g="), ("PublicKey = <b42>A=",), has_three_cases),
    _word("bitcoin_wif", r"[5KL][1-9A-HJ-NP-Za-km-z]{50,51}", "Bitcoin wiki, wallet import format",
          "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ KwdMAjGmerYanjeui5SHS7JkmpZvVipYvB2LJGU1ZxJwYvP98617", "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTK", base58check),
    _word("extended_private_key", r"[xyz]prv[1-9A-HJ-NP-Za-km-z]{107}", "BIP 32",
          "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi xprv9s21ZrQH143K31xYSDQpPDxsXRTUcvj2iNHm5NUtrGiGG5e2DtALGdso3pGz6ssrdK4PFmM8NSpSBHNqPqm55Qn3LqFtT2emdEXVYsCzC2U", "xpub<a20>", base58check),
    _d("seed_phrase", LEFT + r"(?i:seed(?: phrase)?|mnemonic(?: phrase)?|recovery phrase|secret phrase)(?i: is |\W{0,9}[:=]\W{1,9})(?P<value>[a-z]{3,8}(?:[ ,]{1,2}[a-z]{3,8}){11,23})", "BIP 39",
       ("seed phrase: legal winner thank year wave sausage worth useful legal winner thank yellow", 'mnemonic = "letter advice cage absurd amount doctor acoustic avoid letter advice cage above"'),
       ("The seed phrase is a list of words.", "mnemonic: roygbiv"), None),
    _token("password_hash", r"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}|\$[156y]\$[./A-Za-z0-9$=,]{4,60}\$[./A-Za-z0-9]{22,86}|\$argon2(?:id|i|d)\$v=\d{1,3}\$m=\d{1,9},t=\d{1,4},p=\d{1,3}\$[A-Za-z0-9+/]{8,64}\$[A-Za-z0-9+/]{16,90}", "crypt(5), RFC 9106",
           "$2b$12$<a53> $6$<a16>$<a86> $argon2id$v=19$m=65536,t=3,p=4$<b22>$<b43>", "$2b$12$x $1.00 $6$"),
)

_STRUCTURE = (
    _d("jwt", LEFT + r"(?P<value>e(?:yJ|yAi|wog)[A-Za-z0-9_-]{10,400}\.e(?:yJ|yAi|wog|30)[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)?)", "RFC 7519 with RFC 7515, compact serialisation",
       ("eyJhbGciOiJIUzI1NiJ9.eyJ<w60>.<w43>", "eyJhbGciOiJSUzI1NiIsImtpZCI6<w24>.eyJ<w200>.<w342>"), ("eyJhbGciOiJIUzI1NiJ9", "www.example.co.uk", "api.eyjafjallajokull.example.com"), None),
    _d("jwe", LEFT + r"(?P<value>eyJ[A-Za-z0-9_-]{10,400}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{16}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{22})", "RFC 7516, compact serialisation",
       ("eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..<w16>.<w200>.<w22>", "eyJhbGciOiJSU0EtT0FFUCJ9.<w342>.<w16>.<w90>.<w22>"), ("eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..",), None),
    _d("bearer_token", LEFT + r"(?i:bearer)(?:\s|%20|\+|\\t){1,3}(?P<value>[A-Za-z0-9._~+/=-]{5,}[A-Za-z0-9_/=-])", "RFC 6750, section 2.1",
       ("Authorization: Bearer <a40>", "bearer <h32>", "Bearer <a20>.<a20>"),
       ("bearer authentication", "Bearer <TOKEN>", "the bearer token expired", "Bearer YOUR_API_KEY", "Bearer XXXXXXXXXXXX"), bearer_value),
    _d("basic_credentials", LEFT + r"(?i:basic)(?:\s|%20|\\t){1,3}(?P<value>[A-Za-z0-9+/]{8,400}={0,2})", "RFC 7617",
       ("Authorization: Basic YWxpY2U6aHVudGVyMnp6", "Basic dXNlcjpwYXNzdzByZCE="), ("basic authentication", "Basic QUJDREVGR0g=", "basic programming"), basic_credentials),
    _d("authorization_header", LEFT + r"(?i:authorization|x-api-key|x-auth-token|x-access-token|x-goog-api-key|api-key|private-token|x-vault-token|circle-token)" + _IS
       + r"(?i:(?:api-?)?token[ =]|(?:api-?)?key |digest |bot |splunk |sso-key |bearer |basic )?(?:token=)?" + r"(?P<value>[A-Za-z0-9._~+/:=@-]{7,}[A-Za-z0-9_/=-])", "RFC 9110, section 11.6.2, and usual API headers",
       ("Authorization: token <a40>", 'curl -H "X-Api-Key: <h32>"', "Authorization: <h8>-<h4>-<h4>-<h4>-<h12>", "PRIVATE-TOKEN: <a20>"), ("Authorization: required", "Authorization: Bearer $TOKEN", "x-api-key: your-api-key-here"), bearer_value),
    _d("url_password", r"://[A-Za-z0-9._~%!$&*+=-]{0,64}:(?P<value>[^\s/@:\"'<>`\\]{3,100})@[A-Za-z0-9\[.]", "RFC 3986, section 3.2.1",
       ("https://alice:<a12>@git.example.com/repo.git", "postgres://app:s3cr3t!pw@db.internal:5432/app", "redis://:<a16>@cache:6379/0", "mongodb+srv://u:<a10>@c0.example.mongodb.net", "amqp://guest:hunter2@mq/"),
       ("https://example.com:8080/@user", "http://user@host/path", "https://user:$PASSWORD@host", "postgres://user:{password}@host", "https://user:********@host", "https://${USER}:${PASS}@host", "https://example.com/a:b@c"), url_value),
    _d("connection_string", LEFT + r"(?i:password|pwd)(?:\s?=\s?)(?P<value>[^;\s\"'<>{}$%(][^;\s\"'<>]{2,100}[^;\s\"'<>(),.])", "ADO.NET, ODBC and libpq docs, connection strings",
       ("Server=db;Database=shop;User Id=sa;Password=<a10>!;Encrypt=true", "host=db user=app password=<a12>7 dbname=shop"), ("Server=db;Password=${PW};", "Password=****;", "Pwd=x;"), password_value),
    _d("cli_user", _DASH + r"(?:-u|--user|--basic-auth|--proxy-user)[ =]?(?:" + QUOTE + r")?[A-Za-z0-9._@-]{0,64}:(?P<value>[^\s\"'<>$@{\[(][^\s\"'<>]{2,100})", "curl(1)",
       ("curl -u elastic:P@ssw0rd1 https://localhost:9200", "curl --user 'alice:<a12>9' https://example.com"), ("docker run -u 1000:1000 app", "curl -u username:password x", "curl -u user:$PASS x", 'curl -u "a:${B}" x'), password_value),
    _d("cli_option", _DASH + r"--?(?i:(?:[a-z]{1,16}-){0,2})(?i:password|passwd|passphrase|token|api-?key|secret|secret-key|access-key|auth-token|client-secret)(?:=|\s{1,3})(?:" + QUOTE + r")?(?P<value>[A-Za-z0-9!#%^*()_+=.,:/@~-]{3,}[A-Za-z0-9!#%^_+=/@~-])", "usual command-line options",
       ("tool --password hunter2!x", "deploy --token <a32>", 'login --api-key="<h32>"'), ("tool --password $PASSWORD", "tool --token <token>", "tool --password-stdin", "use --token to pass it"), secret_value),
    _d("netrc", LEFT + r"(?i:login)[ \t\n]{1,4}\S{1,64}[ \t\n]{1,4}(?i:password)[ \t\n]{1,4}(?P<value>[!-;=-\[\]-~]{3,100}[A-Za-z0-9!#$%^+=_@~-])", "netrc(5)", ("machine example.com login alice password <a12>9", "machine h login u\n  password x-oauth-<a20>"), ("login page password required", "login with password $PASSWORD"), password_value),
    _d("xml_setting", LEFT + r"(?i:key)=" + QUOTE + r"[\w.-]{0,40}(?i:password|passwd|pwd|secret|token|apikey|api_key)" + QUOTE + r"\s{1,4}value=" + QUOTE + r"(?P<value>[^\"'\n<>\\]{4,200})" + QUOTE, "NuGet and .NET docs, configuration files",
       ('<add key="ClearTextPassword" value="<a12>9!" />', '<add key="ApiKey" value="<a24>" />'), ('<add key="Password" value="%NUGET_PASSWORD%" />', '<add key="theme" value="dark" />'), phrase_value),
    _d("bundler_credentials", r"BUNDLE_[A-Z0-9_]{2,60}__(?:COM|ORG|NET|IO|DEV)" + _IS + r"(?P<value>[A-Za-z0-9._-]{2,64}:[A-Za-z0-9._-]{3,100}[A-Za-z0-9])", "Bundler docs, credentials for gem sources",
       ("BUNDLE_ENTERPRISE__CONTRIBSYS__COM=<h8>:<h8>", 'BUNDLE_GEMS__EXAMPLE__ORG: "<h8>:<h8>"'), ("BUNDLE_GEMS__EXAMPLE__ORG=true",)),
    _d("generic_assignment", r"(?:" + LEFT + _KEY_NAMES + _IS + "|" + LEFT + r"(?i:key)=[\"']?|(?:Token|Secret|(?i:api_?key))" + _IS + ")" + _VALUE, "the form of an assignment, not of a token",
       ("api_key=<a24>", "token: <h32>", '"clientSecret": "<a24>"', "key=<a24>", '{\\"access_token\\": \\"<w40>\\"}', "X-API-Key: <a32>", "<apiToken>\n  <h32>\n</apiToken>", 'set("API_TOKEN", "<a24>")'),
       ("monkey=<a24>", "key=lambda item: item[1]", "token=$TOKEN", "api_key=os.environ['KEY']", "token=<token>", "secret=xxxxxxxx", "max_tokens: 4096", "api_key=your-api-key",
        "key=item.first_name", "token = get_token(user1)"), secret_value),
    _d("provider_assignment", LEFT + _PROVIDERS + r"[\w.-]{0,24}" + _IS + r"(?P<value>[A-Za-z0-9_=.~+/-]{15,}[A-Za-z0-9_=~-])", "providers whose keys have no prefix, by their name in the variable's",
       ("DATADOG_API_KEY=<h40>", 'adafruitToken = "<l32>"', "twitter_secret: <l45>", "MISTRAL_API_KEY=<a32>"), ("okta_domain=dev-12345.okta.com", "datadog: https://app.datadoghq.com", "azure_region = northeurope-2", "sentry = enabled"), provider_value),
    _d("provider_number", LEFT + _PROVIDERS + r"[\w.-]{0,16}(?i:token|secret|key|client[_-]?id)" + _IS + r"(?P<value>\d{15,40})", "providers whose ids and secrets are long numbers, by their name in the variable's",
       ("asana_token: <d16>", 'DISCORD_CLIENT_SECRET = "<d32>"'), ("discord_guild_id = 932521325998894178", "asana_token: 1234"), varied),
    _d("softlayer_key", LEFT + r"(?i:sl|softlayer)[_-]?(?i:api[_-]?)?(?i:key|token|secret|pass(?:word)?|pwd)" + _IS + r"(?P<value>[a-z0-9]{64})", "IBM Cloud classic infrastructure docs, API keys",
       ('sl-key: "<l64>"', "softlayer_api_key=<l64>"), ("sl_key=abc", "sl_keys")),
    _d("softlayer_url", r"softlayer\.com/soap/v3(?:\.1)?/(?P<value>[a-z0-9]{64})", "IBM Cloud classic infrastructure docs, SOAP addresses",
       ("http://api.softlayer.com/soap/v3.1/<l64>", "https://api.softlayer.com/soap/v3/<l64>"), ("softlayer.com/soap/v3/",)),
    _d("high_entropy_assignment", "(?:" + LEFT + r"(?i:key|token|secret|auth[_-]|passw)|Key|Token|Secret)[\w.-]{0,20}" + _IS + r"(?P<value>[A-Za-z0-9_+/=-]{20,})", "random text assigned to a name that speaks of secrets",
       ("SECRET_KEY_BASE=<h64>", 'token_v2: "<a40>"', "apiKeyProd = '<b44>'"), ("key_name = aaaaaaaaaaaaaaaaaaaaaaaa", "token_type: urn-ietf-params-oauth-token-type", "primary_key_column: customer_identifier"),
       all_of(min_entropy(3.4), random_looking)),
    _d("password_assignment", "(?:" + LEFT + _PASSWORD_NAMES + "|" + _PASSWORD_ALSO + ")(?:" + _IS + r"|(?i: is |是| to ))" + _VALUE, "the form of an assignment",
       ("password=<a12>7", "DB_PASSWORD=hunter2zz", '"password": "<a6>!<a6>"', "Password: <a8>#1", "spring.datasource.password=<a12>7", "dbPassword: <a8>#1", "my password is <a8>-7", "密码：<a8>#1"),
       ("password=$DB_PASSWORD", "password: string", "password = get_password(user1)", "password=********", "password=password", "password: z.string().min(8)", "password=os.environ['PW1']", "Password: required"), password_value),
    _d("password_tangled", "(?:" + LEFT + "(?:" + _PASSWORD_NAMES + "|" + _KEY_NAMES + "|(?i:secrete)|" + r"(?i:db_?pass))(?:[_.-][\w.-]{0,20})?|" + _PASSWORD_ALSO + r")(?:\[\d{0,4}\])?(?:" + _IS + r"|\s{1,3}" + QUOTE + r")(?P<value>[!#-&(-_a-~]{8,128})", "the form of an assignment; a value whose brackets do not pair is no code",
       ("password = m{{h}o)p${e]x", 'secret_old: "a(b]c}d-1!"', "api_key := k[(x]9zz!q", 'password "m{{h}o)p$x"'), ("password = get(users[0], name)", "token = {a: [b(c)]}", "secret = f(x)]", "password = hunter22"), tangled),
    _d("password_compared", LEFT + r"(?i:if|elif|elsif|unless)\b\s?\(?\s?" + QUOTE + r"(?P<value>[^\"'`\\\n]{4,128})\\{0,8}[\"'`]\s{0,3}(?:[!=]==?|eq|ne)\s{0,3}[$@]?(?i:[a-z]{1,16}[_.]){0,3}(?:" + _PASSWORD_NAMES + "|" + _KEY_NAMES + r")(?:\b|_)", "the form of a comparison",
       ('if ("<a4>}<a4>,1" == password) {', "if '<a12>7' === user.my_password:"), ('if ("" == password)', 'if ("password" == token)', 'if ("x" == y)'), phrase_value),
    _d("password_quoted", "(?:" + LEFT + _PASSWORD_NAMES + r"(?:[_.-][\w.-]{0,20})?|" + LEFT + _KEY_NAMES + "|" + _PASSWORD_ALSO + ")" + _IS_QUOTED + r"(?P<value>[^\"'`\\\n]{4,128})\\{0,8}[\"'`]", "the form of an assignment of a string",
       ('password = "<a4>}<a4>,1"', "db_pass: 'A,.:-@*7!'", 'passphrase = "correct horse battery staple"', '{"password": "tr0ub4dor&3"}'),
       ('password: "Enter your password"', 'password = ""', '"password": "string"', "password='${PASSWORD}'", 'secret: "the name of the secret"', 'token: "value"', "password = 'password'"), phrase_value),
)

SECRETS: tuple[Detector, ...] = (
    *_LLM, *_CLOUD, *_CODE_HOSTS, *_BUILD, *_CHAT, *_PAYMENT, *_MAIL, *_OBSERVABILITY, *_SERVICES, *_KEYS, *_STRUCTURE
)
# For texts that nobody will run, as errors and logs: whatever is assigned to a name of a secret, word or not.
ASSIGNMENTS: tuple[Detector, ...] = (
    Detector("any_assignment", "assignments", "(?:(?:" + LEFT + "(?:" + _KEY_NAMES + "|" + _PASSWORD_NAMES + ")|" + _PASSWORD_ALSO + ")" + _IS + "|" + LEFT + r"(?i:key)=[\"']?)"
             + rf"(?P<value>{_INSIDE}*{_LAST})", "the form of an assignment",
             ("api_key=a1b", "token: t1", "key=value", '"password": "correct"', "secret=hunter2"), ("monkey=a1b", "token=$TOKEN", "key=<key>", "password=****", "max_tokens=1"), url_value),
)
# fmt: on
