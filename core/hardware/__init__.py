"""The cards through NVML, the host through psutil, and whether this torch fits this driver. No torch."""
