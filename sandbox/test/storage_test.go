// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// claimManifest returns a PersistentVolumeClaim without a storage class, with the given annotation
// if it is not empty.
func claimManifest(name, annotation string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s, annotations: {%s}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, name, annotation)
}

const volumeAnnotation = "sandbox.tidekeeper.dev/volume"

// TestClaimsBindGrowAndGo checks that a PersistentVolumeClaim is bound to a volume, and that the
// volume grows with the claim and is deleted after it.
func TestClaimsBindGrowAndGo(t *testing.T) {
	s := sharedSandbox(t)
	namespace := newNamespace(t, s)
	kubectl := func(args ...string) string {
		t.Helper()
		return s.must(t, append([]string{"kubectl", "-n", namespace}, args...)...)
	}
	apply(t, s, namespace, claimManifest("data", ""))
	kubectl("wait", "pvc/data", "--for=jsonpath={.status.phase}=Bound", longTimeout)
	volume := kubectl("get", "pvc", "data", "-o=jsonpath={.spec.volumeName}")
	if got := kubectl("get", "pv", volume, "-o=jsonpath={.spec.storageClassName} {.spec.capacity.storage}"); got != "standard 1Gi" {
		t.Errorf("the volume is of %s, want standard 1Gi", got)
	}
	kubectl("patch", "pvc", "data", "-p", `{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}`)
	kubectl("wait", "pvc/data", "--for=jsonpath={.status.capacity.storage}=3Gi", longTimeout)
	if got := kubectl("get", "pv", volume, "-o=jsonpath={.spec.capacity.storage}"); got != "3Gi" {
		t.Errorf("the volume has %s, want 3Gi", got)
	}
	kubectl("delete", "pvc", "data", longTimeout)
	kubectl("wait", "pv/"+volume, "--for=delete", longTimeout)
}

// TestClaimsHangAndFail checks that annotations on PersistentVolumeClaims make their requests hang
// or fail until the annotations are removed.
func TestClaimsHangAndFail(t *testing.T) {
	s := sharedSandbox(t)
	namespace := newNamespace(t, s)
	kubectl := func(args ...string) string {
		t.Helper()
		return s.must(t, append([]string{"kubectl", "-n", namespace}, args...)...)
	}
	event := func(object, reason, want string) {
		t.Helper()
		waitFor(t, 30*time.Second, func() string {
			all := s.must(t, "kubectl", "get", "events", "-A", "-o=jsonpath={range .items[*]}{.involvedObject.name} {.reason} {.message}{\"\\n\"}{end}")
			for line := range strings.Lines(all) {
				if strings.HasPrefix(line, object+" "+reason+" ") && strings.Contains(line, want) {
					return ""
				}
			}
			return fmt.Sprintf("no event %s of %s with %q:\n%s", reason, object, want, all)
		})
	}
	apply(t, s, namespace, claimManifest("refused", volumeAnnotation+": refuse")+"---"+claimManifest("odd", volumeAnnotation+": often")+
		"---"+claimManifest("hanging", volumeAnnotation+": hang"))
	event("refused", "ProvisioningFailed", "annotation "+volumeAnnotation+": refuse")
	event("odd", "ProvisioningFailed", `"often" is neither hang nor refuse`)
	// The controller manager records, as for other claims, that it waits for the provisioner.
	event("hanging", "ExternalProvisioning", "sandbox.tidekeeper.dev/simulated")
	if got := kubectl("get", "pvc", "-o=jsonpath={.items[*].status.phase}"); strings.Count(got, "Pending") != 3 {
		t.Errorf("the claims are %s, want all pending", got)
	}
	kubectl("annotate", "pvc", "--all", volumeAnnotation+"-")
	kubectl("wait", "pvc", "--all", "--for=jsonpath={.status.phase}=Bound", longTimeout)

	// This storage class does not allow expansion, and its volumes are retained after their claims
	// are deleted.
	class := namespace
	apply(t, s, namespace, fmt.Sprintf(`
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: %s}
provisioner: sandbox.tidekeeper.dev/simulated
allowVolumeExpansion: true
`, class))
	t.Cleanup(func() { s.must(t, "kubectl", "delete", "storageclass", class) })
	apply(t, s, namespace, strings.Replace(claimManifest("data", ""), "spec: {", "spec: {storageClassName: "+class+", ", 1))
	kubectl("wait", "pvc/data", "--for=jsonpath={.status.phase}=Bound", longTimeout)
	volume := kubectl("get", "pvc", "data", "-o=jsonpath={.spec.volumeName}")
	kubectl("annotate", "storageclass", class, volumeAnnotation+"=refuse")
	kubectl("patch", "pvc", "data", "-p", `{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}`)
	event("data", "VolumeResizeFailed", "refuse")
	kubectl("delete", "pvc", "data", longTimeout)
	event(volume, "VolumeFailedDelete", "refuse")
	kubectl("annotate", "storageclass", class, volumeAnnotation+"-")
	kubectl("wait", "pv/"+volume, "--for=delete", longTimeout)
}
