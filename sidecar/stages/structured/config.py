"""What a policy says of the form of replies."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from ...config import Strict
from ..tools.config import Globs


class SchemaConfig(Strict):
    """A form that replies must have where the request names none."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="What providers are told the form is called; letters, digits, _, -.",
    )
    agents: Globs | None = Field(
        default=None, description="Only replies to these agents (x-sidecar-agent), names or globs. Absent: to all."
    )
    models: Globs | None = Field(
        default=None, description="Only where these models are asked for, names or globs. Absent: all."
    )
    form: Any = Field(
        default=None,
        alias="schema",
        description="The JSON Schema; it is taken as it is written. Without `$schema` it is of draft 2020-12.",
    )
    schema_file: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="A file with the JSON Schema, relative to the policy's own, in the place of `schema`."
    )

    @model_validator(mode="after")
    def _has_a_schema(self) -> "SchemaConfig":
        if "form" not in self.model_fields_set:
            raise PydanticCustomError("empty", "has no schema: give it `schema` or `schema_file`")
        return self


class StructuredConfig(Strict):
    """What happens to replies for which a form is asked: `response_format` and its like, or a schema of the policy."""

    max_repair_attempts: Annotated[int, Field(ge=0, le=10)] = Field(
        default=1, description="How often a model is asked again whose reply does not have the form."
    )
    stream: Literal["buffer", "pass"] = Field(
        default="buffer",
        description="buffer holds a stream until its reply is known to be right, with comments meanwhile; pass lets it "
        "through, checks it at the end and only records.",
    )
    instructions: Literal["auto", "always"] = Field(
        default="auto",
        description="auto tells the form in words only to models whose servers do not take it as a field; always does "
        "so beside the field.",
    )
    schemas: tuple[SchemaConfig, ...] = Field(
        default=(), description="Forms for requests that name none; the first that fits the caller counts."
    )
    max_quoted: Annotated[int, Field(ge=0)] = Field(
        default=2000, description="How much of a reply that was not right the model is shown again, in characters."
    )
    mode: Literal["off", "shadow", "enforce"] = Field(
        default="enforce", description="off; shadow checks and records but asks nothing again; enforce."
    )
