"""An adapter as the older documents write it: one method for all, with the context alone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any


def process_video(path: str) -> None:
    assert Path(path).read_text() == "frames"


def render_video_to(path: Path) -> None:
    path.write_text("processed")


class SeedAdapter:
    async def async_run(self, context: Any) -> dict[str, Any]:
        registry = context.resource_registry
        leased = context.leased_resources or {}

        # Reuse upstream artifact if present.
        video_handle = leased.get("run123/sessionA/frame001")
        if video_handle:
            local_path = video_handle.metadata.get("path")
            process_video(local_path)

        # Produce a new artifact.
        output_path = context.data_dir / "processed.mp4"
        render_video_to(output_path)

        artifact_id = f"{context.run_id}/{context.task_id}/processed"
        registry.register_file(
            resource_id=artifact_id,
            file_path=output_path,
            scope=context.run_id,
            metadata={"mime": "video/mp4"},
            expires_at=(
                video_handle.expires_at + timedelta(hours=1)
                if video_handle and video_handle.expires_at
                else None
            ),
        )

        return {
            "status": "succeeded",
            "outputs": {"message": "video processed"},
            "artifacts": [
                registry.to_artifact_descriptor(artifact_id, inline=False),
            ],
        }

    def told(self, context: Any) -> dict[str, Any]:
        """A method of its own, that still gets the context alone."""
        return {
            "status": "succeeded",
            "outputs": {
                "tenant": context.tenant,
                "params": context.params,
                "refs": [one["resource_id"] for one in context.resource_refs],
                "is_there": context.data_dir.is_dir(),
            },
            "artifacts": [],
        }
