// Package config reads what an operator wrote: zoo.cfg as ZooKeeper reads it,
// the dynamic configuration file, myid, and the Java properties given as JVM
// flags.
//
// [Load] returns a [Config] with every setting typed, in units of Go, and
// checked; or an error whose parts are of type [Error] and say file, line, key,
// what is allowed and what to do. Keys that have no effect here are named once
// in Config.Notices, with the reason; Config.Warnings lists what is allowed but
// unwise.
//
// All keys stand in one table (keys_*.go): kind, form, default, range, effect,
// and what this version does with them. Reading, notices and
// docs/configuration.md are made from that table; after a change to it run
//
//	go test ./internal/config -run TestDocument -update
//
// Three rules decide what a line of zoo.cfg does. A parsed key (kind P) is
// known by its exact name. Any other line sets the Java property
// zookeeper.<key> (kind S). Properties of other names (kind J) can only be
// given as -D flags. What ZooKeeper would not honour is not honoured here:
// otherwise a stray line would change its meaning on the day of the take-over.
// In one point this package is stricter on purpose: where ZooKeeper quietly
// takes the default instead of a value it cannot read, Load reports the value.
//
// The package reads the files that it is told of, opens no socket, resolves no
// name, looks at no environment variable, and starts no goroutine. A Config
// belongs to the caller. Read config.go first, then table.go and load.go.
package config
