// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"tidekeeper.dev/tidekeeper/sandbox/client"
)

// TestTokenIsRenewed checks that the token file is replaced before the token expires.
func TestTokenIsRenewed(t *testing.T) {
	const lifetime = 12 * time.Second
	var granted atomic.Int32
	clientset := fake.NewClientset()
	clientset.PrependReactor("create", "serviceaccounts", func(action clienttesting.Action) (bool, runtime.Object, error) {
		request := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenRequest).DeepCopy()
		if ref := request.Spec.BoundObjectRef; ref == nil || ref.Kind != "Pod" || ref.Name != "operator-1" || ref.UID != "uid" {
			t.Errorf("the token is bound to %v, want the Pod", ref)
		}
		request.Status.Token = fmt.Sprintf("token %d", granted.Add(1))
		// The first token expires after a second; later tokens are valid for an hour.
		left := time.Second
		if granted.Load() > 1 {
			left = time.Hour
		}
		request.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(left))
		return true, request, nil
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "operator-1", UID: "uid"}}
	pod.Spec.ServiceAccountName = "operator"
	dir := t.TempDir()
	v := newServiceAccountVolume(clientset, pod, []byte("authority"), dir, lifetime)
	if err := v.write(); err != nil {
		t.Fatal(err)
	}
	want := func(token string) bool {
		for name, content := range map[string]string{"token": token, "ca.crt": "authority", "namespace": "shop"} {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != content {
				return false
			}
		}
		return true
	}
	if !want("token 1") {
		t.Fatal("the files do not have the first token")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		v.renew(ctx, time.Millisecond)
		close(done)
	}()
	if err := client.Wait(t.Context(), 2*time.Minute, "the token is renewed", func() error {
		if !want("token 2") {
			return errors.New("it is not")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	if got := granted.Load(); got != 2 {
		t.Errorf("%d tokens were asked for, want 2: the second one is good for an hour", got)
	}
}
