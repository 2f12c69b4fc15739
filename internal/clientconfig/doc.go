// Package clientconfig decides how the client commands connect to servers: with TLS or
// without, and with which login. The user says so by flags, environment variables, or
// ZooKeeper's client configuration file.
//
// [Settings] lists the flags and variables. [Load] reads them and the file, and returns a
// [Config], which sets the options of package zk and opens connections for four-letter
// words. A flag takes precedence over a variable, a variable over the file, and the file over
// the -D settings of CLIENT_JVMFLAGS and JVMFLAGS, which ZooKeeper's own command line reads.
//
// As in ZooKeeper, properties that are not known are ignored. Where that would weaken the
// security that the user seems to expect, [Config.Notices] says so. One difference is on
// purpose: if a login is configured that cannot work, Load returns an error; ZooKeeper's
// client connects without a login.
//
// Passwords are read from files and the environment, never from flags, because other users
// of the machine can read the command line of a process. No error or notice contains one.
//
// A login by Kerberos has a goroutine; [Config.Close] ends it. Read load.go first.
package clientconfig
