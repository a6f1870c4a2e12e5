"""Addresses: all of them, and the kinds that deserve a second look."""

# ruff: noqa: E501 -- a table reads better in long lines

from sidecar.text.checks import Check
from sidecar.text.detectors.model import LEFT, Detector, samples


def _d(
    name: str, regex: str, source: str, yes: tuple[str, ...], no: tuple[str, ...], check: Check | None = None
) -> Detector:
    return Detector(name, "urls", rf"{LEFT}(?P<value>{regex})", source, samples(yes), samples(no), check)


# An address goes on to white space, a quote, a bracket or a character of another script; closing punctuation is not
# part of it.
_REST = r"(?:[A-Za-z0-9/._~:?#@!$&*+,;=%()\[\]-]*[A-Za-z0-9/_~#=%-])?"
_OCTETS = r"(?:\d{1,3}\.){3}\d{1,3}|0x[0-9a-fA-F]{8}|\d{8,10}|\[[0-9A-Fa-f:.]{2,45}\]"
_SHORTENERS = r"bit\.ly|tinyurl\.com|t\.co|goo\.gl|is\.gd|ow\.ly|buff\.ly|rebrand\.ly|cutt\.ly|shorturl\.at|rb\.gy|t\.ly|tiny\.cc|v\.gd|lnkd\.in|s\.id|bl\.ink|qr\.ae|adf\.ly"
_CATCHERS = r"(?:[A-Za-z0-9-]{1,63}\.)?(?:webhook\.site|requestbin\.(?:com|net)|pipedream\.net|ngrok(?:-free)?\.(?:app|io|dev)|trycloudflare\.com|interact\.sh|oast\.(?:pro|live|site|online|fun|me)|burpcollaborator\.net|oastify\.com|beeceptor\.com|hookbin\.com|serveo\.net|loca\.lt|transfer\.sh|pastebin\.com|paste\.ee|dpaste\.(?:com|org)|hastebin\.com)"

# fmt: off
URLS: tuple[Detector, ...] = (
    _d("url", rf"(?i:https?|ftps?|sftp|wss?|git|ssh|ldaps?|gopher|smb)://[A-Za-z0-9\[._~%@:$&*+=-]{_REST}", "RFC 3986", ("https://example.com/a?b=c#d", "http://localhost:8080", "wss://example.org/socket", "ftp://example.net/x"), ("https:// x", "example.com", "a://b", "note: this")),
    _d("www_address", rf"(?i:www)\.[A-Za-z0-9-]{{1,63}}\.[A-Za-z]{{2,24}}{_REST}", "common usage: an address without its scheme", ("www.example.com", "www.example.co.uk/path"), ("www", "wwwx.example.com")),
    _d("ip_url", rf"(?i:https?|ftp)://(?:{_OCTETS}){_REST}", "RFC 3986, a host that is a number", ("http://203.0.113.7/x", "https://[2001:db8::1]/", "http://3405803783/", "http://0xcb007107/"), ("http://example.com/1.2.3.4",)),
    _d("credentials_url", rf"(?i:https?|ftp|ssh)://[A-Za-z0-9._~%!$&*+=-]{{1,64}}(?::[A-Za-z0-9._~%!$&*+=-]{{0,64}})?@[A-Za-z0-9.\[-]{_REST}", "RFC 3986, user information", ("https://alice:secret@example.com/", "https://example.com@evil.example/"), ("https://example.com/@alice",)),
    _d("punycode_url", rf"(?i:https?)://(?:[A-Za-z0-9-]{{1,63}}\.){{0,6}}(?i:xn--)[A-Za-z0-9-]{{1,59}}{_REST}", "RFC 5891, a host that shows other letters than it has", ("https://xn--80ak6aa92e.com/", "http://login.xn--pple-43d.com"), ("https://example.com/xn--a",)),
    _d("shortened_url", rf"(?:(?i:https?)://)?(?:{_SHORTENERS})/[A-Za-z0-9_-]{{2,40}}", "link shorteners' own pages", ("https://bit.ly/3xYzAbC", "t.co/AbCdEf1234", "tinyurl.com/abc123"), ("https://bit.ly/", "notbit.ly/abc", "artist.co/about")),
    _d("catcher_url", rf"(?:(?i:https?)://)?(?:{_CATCHERS})\b(?:(?::\d{{1,5}})?/{_REST})?", "public request catchers, tunnels and paste sites: where stolen data goes", ("https://webhook.site/<h8>-<h4>-<h4>-<h4>-<h12>", "https://abc123.ngrok-free.app/x", "x7.oastify.com"), ("https://example.com/webhook", "pastebin.community", "ngrok")),
    _d("data_url", r"(?i:data):(?:text|application|image/svg)[/+][A-Za-z0-9.+-]{1,60}(?:;[A-Za-z0-9=-]{1,40}){0,3},[A-Za-z0-9+/=%_.~!*'()-]*[A-Za-z0-9+/=%_-]", "RFC 2397, but for pictures", ("data:text/html;base64,PHNjcmlwdD4=", "data:text/plain,hello%20world"), ("data: text", "data:image/png;base64,iVBORw0KGgo=")),
    _d("script_url", r"(?i:javascript|vbscript):[!#-&(-;=?-~]{1,200}?[A-Za-z0-9_](?:\)|\b)", "WHATWG HTML, script addresses", ("javascript:alert(1)", "javascript:void(0)"), ("javascript: the good parts", "typescript:x")),
    _d("file_url", r"(?i:file)://[A-Za-z0-9/._~%:-]{1,200}[A-Za-z0-9/_~%-]", "RFC 8089", ("file:///etc/passwd", "file://server/share/x.txt"), ("file: x", "profile://x")),
    _d("onion_address", rf"(?:(?i:https?)://)?[a-z2-7]{{56}}\.onion(?:(?::\d{{1,5}})?/{_REST})?", "Tor rendezvous specification, version 3", ("http://<n56>.onion/x", "<n56>.onion"), ("<n10>.onion", "red.onion")),
    _d("metadata_url", rf"(?i:https?)://(?:169\.254\.169\.254|169\.254\.170\.2|\[fd00:ec2::254\]|metadata\.google\.internal|metadata\.azure\.com|100\.100\.100\.200)(?:(?::\d{{1,5}})?/{_REST})?", "cloud providers' docs, instance metadata", ("http://169.254.169.254/latest/meta-data/iam/", "http://metadata.google.internal/computeMetadata/v1/"), ("http://169.254.1.1/",)),
)
# fmt: on
