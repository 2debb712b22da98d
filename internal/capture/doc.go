// Command capture runs popular libraries on a throwaway PostgreSQL and keeps
// the statements they send, as test data that ordinary programs' SQL is not
// refused. README.md tells how to run it again.
package main
