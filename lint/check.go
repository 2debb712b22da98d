package lint

import "github.com/fencerow/fencerow/driver"

// Check runs a function and returns the findings of every handle in the process
// meanwhile, also what others sent on them.
func Check(f func(), opts ...Option) []Finding {
	c := newCollector(opts)
	stop := driver.Observe(driver.Observer{Event: c.recordEvent})
	defer stop()
	f()
	stop()
	return c.finish(true)
}
