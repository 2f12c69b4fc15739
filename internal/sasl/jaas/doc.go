// Package jaas reads the files that java.security.auth.login.config names, in the syntax that
// the JDK accepts, and says what the login modules in them mean.
//
// [Parse] reads a [File] of sections. [Section.Login] is the typed view of one: [Digest] for
// ZooKeeper's DigestLoginModule, [Kerberos] for the JDK's Krb5LoginModule. A setting that has
// no meaning here is an error with its place in the file; one that the module itself would
// ignore is reported in Login.Ignored.
//
// Each value of an option is a secret until its meaning is known, so neither a File nor an
// error shows one.
//
// The package differs from the JDK on purpose in this: a quoted text that is not closed on its
// line, a comment that is not closed, and a single slash outside quotes are errors. The JDK
// closes them itself, and takes what follows a slash as a comment. A switch of Krb5LoginModule
// must be true or false; the JDK takes any other word as false.
//
// Callers read the file, and supply the values of ${...} (the -D flags of the JVM). A file has
// at most [FileMax] bytes.
//
// Read parse.go first, then login.go.
package jaas
