// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options configure the program and the identity it runs under.
type Options struct {
	// Config is how the administrator reaches the API server.
	Config *rest.Config
	// Program is the program and its arguments.
	Program []string
	// From names the Deployment whose container the program is; empty: none.
	From string
	// ServiceAccount is the account of the program. Empty: that of the Deployment, or a new account
	// without rights.
	ServiceAccount types.NamespacedName
	// Services are additional Services whose webhooks the program serves. Services that select its
	// Pod need no mention.
	Services []types.NamespacedName
	// CertDir is the directory in which the program expects its serving certificate.
	CertDir string
	// WebhookPort is the port of the program for webhooks; 0: the target port of the Service.
	WebhookPort int32
	// Environment are variables of the program in addition to those of a container.
	Environment []string
}

// cleanupTimeout is the longest time that the cleanups of a program take.
const cleanupTimeout = 30 * time.Second

// run is a program in the cluster.
type run struct {
	Options
	client   kubernetes.Interface
	cleanups cleanups
}

// Run runs the program, in the namespaces of this process, until it ends, and returns
// its exit code. The program is killed when the starter ends.
func Run(ctx context.Context, o Options, starter *os.File) (code int, err error) {
	// From here on, no signal ends this process before it has cleaned up.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passedOn...)
	defer signal.Stop(signals)
	starterEnded := ended(starter)

	r := &run{Options: o}
	if r.client, err = kubernetes.NewForConfig(o.Config); err != nil {
		return 0, err
	}
	defer r.cleanups.run()
	cmd, podDeleted, err := r.prepare(ctx)
	if err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return supervise(cmd, signals, starterEnded, podDeleted)
}

// prepare makes the Pod, the files and the webhooks of the program, and the command that starts
// it. The channel gets the grace period when the Pod is deleted.
func (r *run) prepare(ctx context.Context) (*exec.Cmd, <-chan time.Duration, error) {
	wanted, err := newPod(ctx, r.client, r.Options)
	if err != nil {
		return nil, nil, err
	}
	hooks, err := findWebhooks(ctx, r.client, r.Options, wanted)
	if err != nil {
		return nil, nil, err
	}
	dirs := []string{serviceAccountDir}
	if hooks != nil {
		dirs = append(dirs, r.CertDir)
	}
	if err := mount(dirs...); err != nil {
		return nil, nil, err
	}
	pod, err := podStarter{client: r.client, cleanups: &r.cleanups}.start(ctx, wanted)
	if err != nil {
		return nil, nil, err
	}
	// Programs that elect a leader name themselves by the host name. A kubelet shortens it as well.
	if err := unix.Sethostname([]byte(pod.Name[:min(len(pod.Name), longestHostName)])); err != nil {
		return nil, nil, fmt.Errorf("set the host name: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return nil, nil, err
	}
	token := newServiceAccountVolume(r.client, pod, r.Config.CAData, serviceAccountDir, tokenLifetime)
	if err := token.keep(ctx, &r.cleanups); err != nil {
		return nil, nil, err
	}
	if hooks != nil {
		if err := hooks.redirectTo(ctx, pod, r.CertDir, &r.cleanups); err != nil {
			return nil, nil, err
		}
	}
	declared, err := variables{client: r.client, pod: pod}.of(ctx, container(pod))
	if err != nil {
		return nil, nil, err
	}
	cmd, err := r.command(pod, declared)
	if err != nil {
		return nil, nil, err
	}
	return cmd, watchDeletion(ctx, r.client, pod, &r.cleanups), nil
}
