"""The trend of a drive model: values over dates, firmwares or hosts, against a baseline, with changes of level."""
