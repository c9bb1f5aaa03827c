def pictures(folder, pattern, **labels):
    """Return a folder of figures, which Snakemake's report shows under the folder's name."""
    labels["figure"] = "{figure}"
    of = folder.rpartition("/")[2]
    caption = "../report/figures.rst"
    return report(
        directory(folder), patterns=[pattern], category="Figures", subcategory=of, labels=labels, caption=caption
    )
