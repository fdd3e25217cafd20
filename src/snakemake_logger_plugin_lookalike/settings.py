"""Options ``--logger-lookalike-...``. Snakemake asks for their types, so annotations are evaluated here."""

from dataclasses import dataclass, field

from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):  # type: ignore[misc]
    """What the person chooses."""

    full: bool = field(
        default=False,
        metadata={"help": "Show Snakemake's own output in full instead of this plugin's.", "env_var": True},
    )
