// Package claimtest holds what the tests of several recipe families share: the znode of their models, and
// a [Dialogue] that steps the machine of one operation. Only tests import it.
package claimtest
