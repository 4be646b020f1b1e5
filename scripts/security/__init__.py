"""Security gate: scans the planned resources and rendered manifests of an environment before anything is applied."""
