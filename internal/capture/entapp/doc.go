// Package entapp does what ent's generated code does: it fills in the specs of
// sqlgraph, which builds the statements, and migrates with ent's schema
// package. Generated code itself would be thousands of lines for the same SQL.
package entapp
