undefined_name  # noqa: B018, F821
