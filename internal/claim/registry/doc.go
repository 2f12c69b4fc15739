// Package registry holds the state machines of registrations: a [Registrant] keeps an ephemeral znode from one
// session to the next, and a [Removal] removes one within its session.
package registry
