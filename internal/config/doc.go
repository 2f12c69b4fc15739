// Package config reads the configuration of a server: zoo.cfg as ZooKeeper reads it, the
// dynamic configuration file, myid, and the Java properties given as JVM flags.
//
// [Load] returns a [Config] with every setting checked and converted to Go types, or an
// error. The error joins values of type [Error], which name file, line, key, allowed
// values and remedy. Config.Notices names, with the reason, each key that has no effect.
// Config.Warnings names settings that are allowed but unwise.
//
// One table (keys_*.go) holds all keys: kind, form, default, range, effect, and what this
// version does with the key. Load, the notices and docs/configuration.md follow that
// table. After a change to it run
//
//	go test ./internal/config -run TestDocument -update
//
// Three rules decide what a line of zoo.cfg does. A parsed key (kind P) is
// known by its exact name. Any other line sets the Java property
// zookeeper.<key> (kind S). Properties with other names (kind J) can only be
// given as -D flags. A line that ZooKeeper ignores is ignored here too: otherwise a stray
// line would take effect on the day of the migration. In one point this package is
// stricter on purpose: if ZooKeeper silently replaces a value that it cannot read by the
// default, Load reports the value as an error.
//
// The package reads only the files named above. It opens no socket, resolves no name,
// reads no environment variable, and starts no goroutine. A Config belongs to the caller.
// Read config.go first, then table.go and load.go.
package config
