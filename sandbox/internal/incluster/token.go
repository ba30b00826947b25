// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/kubelet/token"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"
)

const (
	// tokenLifetime is the usual lifetime of a Pod's token in a cluster.
	tokenLifetime = 3607 * time.Second
	// tokenPeriod is the interval at which a kubelet checks whether a token needs renewal.
	tokenPeriod = time.Minute
)

// serviceAccountVolume manages the directory with a ServiceAccount's files. It uses code of the
// real kubelet: the token manager, which renews tokens when a fifth of their lifetime is left, and
// the atomic writer, which replaces all files at once.
type serviceAccountVolume struct {
	dir      string
	ca       []byte
	pod      *corev1.Pod
	lifetime time.Duration
	tokens   *token.Manager
}

func newServiceAccountVolume(client kubernetes.Interface, pod *corev1.Pod, ca []byte, dir string, lifetime time.Duration) *serviceAccountVolume {
	return &serviceAccountVolume{dir: dir, ca: ca, pod: pod, lifetime: lifetime, tokens: token.NewManager(client)}
}

// write writes the ServiceAccount's files if their content has changed.
func (v *serviceAccountVolume) write() error {
	seconds := int64(v.lifetime.Seconds())
	granted, err := v.tokens.GetServiceAccountToken(v.pod.Namespace, v.pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: &seconds,
			// The token is valid as long as the Pod exists.
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: v.pod.Name, UID: v.pod.UID},
		},
	})
	if err != nil {
		return fmt.Errorf("get a token of ServiceAccount %s/%s: %w", v.pod.Namespace, v.pod.Spec.ServiceAccountName, err)
	}
	writer, err := volumeutil.NewAtomicWriter(v.dir, "service account")
	if err != nil {
		return err
	}
	const readable = 0o644
	return writer.Write(map[string]volumeutil.FileProjection{
		corev1.ServiceAccountTokenKey:     {Data: []byte(granted.Status.Token), Mode: readable},
		corev1.ServiceAccountRootCAKey:    {Data: v.ca, Mode: readable},
		corev1.ServiceAccountNamespaceKey: {Data: []byte(v.pod.Namespace), Mode: readable},
	}, nil)
}

// keep writes the ServiceAccount's files, and renews the token until the cleanups run.
func (v *serviceAccountVolume) keep(ctx context.Context, c *cleanups) error {
	if err := v.write(); err != nil {
		return err
	}
	c.background(ctx, func(ctx context.Context) { v.renew(ctx, tokenPeriod) })
	return nil
}

// renew renews the token periodically until the context is done.
func (v *serviceAccountVolume) renew(ctx context.Context, period time.Duration) {
	look := time.NewTicker(period)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			if err := v.write(); err != nil {
				warn(err)
			}
		}
	}
}
