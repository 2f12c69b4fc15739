// Package registry holds the state machines of registrations. [Registrant] keeps an ephemeral znode across
// sessions. [Removal] removes such a znode within its session.
package registry
