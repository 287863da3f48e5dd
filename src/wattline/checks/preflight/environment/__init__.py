"""Does what the run needs around it fit together: packages, image, versions, secrets?"""
