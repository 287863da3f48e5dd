"""May this be asked at all: classes, quotas, rules, regions, exceptions, and which pools it may use?"""
