package gate

// Server is the server that something was read from. After a failover or a restore,
// and after the database was dropped and made again, it is another one.
type Server struct {
	IsStandby bool
	Database  string // its oid
	Timeline  int64  // 0 where it can't be read, as on a standby
	System    string // its identifier, "" where it can't be read
	Started   string // when, where one of these two can't be read
}

// Standing is how a server stands to another one that was read before.
type Standing int

// How a server stands to another one.
const (
	SameServer  Standing = iota
	OtherServer          // which of the two is newer can't be told but by when they were read
	NewerServer          // it has been promoted since
	Behind               // a standby, or an old primary that is still alive: it has nothing to teach
)

// Against returns how s stands to a server that was read before.
func (s Server) Against(before Server) Standing {
	switch {
	case s == before:
		return SameServer
	case s.IsStandby && before.IsStandby:
		return OtherServer
	case s.IsStandby:
		return Behind
	case s.Database != before.Database || s.System != before.System:
		return OtherServer
	case before.IsStandby:
		return NewerServer
	case s.Timeline == 0 || before.Timeline == 0 || s.Timeline == before.Timeline:
		return OtherServer
	case s.Timeline > before.Timeline:
		return NewerServer
	}
	return Behind
}

// Reading says what a protection was read from, and when.
type Reading struct {
	Server     Server
	Generation int64  // of the registry; 0 for tables from code
	Mark       string // of the row that has the generation
	Allows     bool   // the registry says which functions are allowed
	HasCatalog bool   // the catalog was read, or there is nothing to look for in it
	Stamp      string // of the catalog

	Begun, Ended uint64 // by a count that goes up with each reading of a handle that begins or ends
}

// isNews reports whether a reading tells what may be newer than the last one.
// Two that were made one after the other are in that order, whatever their
// generations are: one that is smaller than before was restored. Two at the same
// time go by the generation.
func (next *Reading) isNews(last *Reading) bool {
	if next.Server.Against(last.Server) == NewerServer {
		return true
	}
	switch {
	case next.Begun > last.Ended:
		return true
	case last.Begun > next.Ended:
		return false
	case next.Generation != last.Generation:
		return next.Generation > last.Generation
	}
	return !next.HasCatalog || next.Begun >= last.Begun
}

// Same reports whether nothing has changed between two readings, but for what the
// catalog's stamp shows.
func (next *Reading) Same(last *Reading) bool {
	return next.Server == last.Server && next.Generation == last.Generation && next.Mark == last.Mark
}
