// Package claimtest has what tests of several families of recipes have in common: the znode of their models, and a
// [Dialogue] with the machine of one operation. Only tests import it.
package claimtest
