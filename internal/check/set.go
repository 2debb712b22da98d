package check

import "slices"

// set is a set that takes no memory of its own while it is small: most texts have
// a few of everything.
type set[K comparable] struct {
	few  [8]K
	n    int
	many map[K]bool // all of them, once there are more
}

func (s *set[K]) has(k K) bool {
	if s.many != nil {
		return s.many[k]
	}
	return slices.Contains(s.few[:s.n], k)
}

func (s *set[K]) add(k K) {
	switch {
	case s.has(k):
	case s.many != nil:
		s.many[k] = true
	case s.n < len(s.few):
		s.few[s.n] = k
		s.n++
	default:
		s.many = make(map[K]bool, 2*len(s.few))
		for _, k := range s.few {
			s.many[k] = true
		}
		s.many[k] = true
	}
}
