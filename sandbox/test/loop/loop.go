// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loop is a minimal control loop for the test operators: it processes each changed object,
// and retries after an error.
package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Run starts an informer and calls look for each changed object, one at a time, until the context
// is done.
func Run(ctx context.Context, informer cache.SharedIndexInformer, look func(cache.ObjectName) error) error {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](20*time.Millisecond, time.Second))
	context.AfterFunc(ctx, queue.ShutDown)
	add := func(object any) {
		if name, err := cache.ObjectToName(object); err == nil {
			queue.Add(name)
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, now any) { add(now) }}); err != nil {
		return err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("the informer has not synced")
	}
	for {
		name, over := queue.Get()
		if over {
			return ctx.Err()
		}
		err := look(name)
		queue.Done(name)
		if err == nil {
			queue.Forget(name)
			continue
		}
		fmt.Fprintln(os.Stderr, name, err)
		queue.AddRateLimited(name)
	}
}
