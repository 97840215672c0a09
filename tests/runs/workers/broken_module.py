raise RuntimeError("this module never imports")
