// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestAddressesAreUnique(t *testing.T) {
	a := newAddresses()
	a.keep("old", "10.128.0.2")
	seen := map[string]types.UID{}
	for i := range 300 {
		uid := types.UID(fmt.Sprint(i))
		ip := a.of(uid)
		if other, taken := seen[ip]; taken || ip == "10.128.0.2" {
			t.Fatalf("pods %s and %s both have %s", uid, other, ip)
		}
		seen[ip] = uid
		if again := a.of(uid); again != ip {
			t.Fatalf("pod %s has %s, then %s", uid, ip, again)
		}
	}
}
