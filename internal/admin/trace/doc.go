// Package trace is the form in which servers pass on traced requests: what the four-letter
// word trac prints, a JSON array of [Trace], oldest first. [Decode] reads what a server
// printed; it limits the number and the length of everything in it, because the text comes
// from another machine.
package trace
