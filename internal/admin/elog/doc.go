// Package elog is the form in which servers pass on the record of their elections: what
// the four-letter word elog prints, a JSON array of [Election], oldest first. [From] makes
// one from a record, and [Decode] reads what another server printed.
//
// What another server printed may be wrong or hostile. Decode limits the number and the
// length of everything in it, and removes characters that do not belong in a text. It
// says nothing about whether the record is true. Read election.go first.
package elog
