// Package wiretest holds what the tests of the byte formats share: readers of
// golden files, a printed form of records that can be compared with them, and
// the rules that every record must follow, see [Family]. Only tests import it.
//
// It starts no goroutine. Read rules.go first.
package wiretest
