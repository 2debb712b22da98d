package pgdownload

// restrictNewFiles does nothing, as Windows has no umask.
func restrictNewFiles() func() { return func() {} }
