// Package capture runs popular libraries on a throwaway PostgreSQL and keeps
// the statements they send, as test data that ordinary programs' SQL is not
// refused. README.md tells how to run it again.
//
// It stands beside internal/compat, which runs four of these libraries, too,
// because the two have little in common. compat asks what becomes of protected
// rows, so it does much the same writes to the same two tables through each
// library: 179 different statements. What is captured are 918 statements of nine
// libraries, on tables of all kinds, with migrators and builders that have no
// protected rows to ask about. Were the runs of compat recorded instead,
// begin, commit, rollback and savepoints would be all that is left
// of the captured texts; with names and values erased, 127 of the 918 have a
// counterpart there. The programs would have to move to compat as they are.
package capture
