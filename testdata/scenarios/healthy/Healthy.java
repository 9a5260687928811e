// A healthy Java program under load: see ../healthy.c for the idea.
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.ReentrantLock;

public class Healthy {
    public static void main(String[] args) throws Exception {
        final ReentrantLock[] locks = new ReentrantLock[6];
        for (int i = 0; i < locks.length; i++) locks[i] = new ReentrantLock();
        final Object monitor = new Object();
        final ArrayBlockingQueue<Integer> queue = new ArrayBlockingQueue<>(4);
        for (int n = 0; n < 16; n++) {
            final int me = n;
            Thread t = new Thread(() -> {
                try {
                    while (true) {
                        int a = ThreadLocalRandom.current().nextInt(6), b = ThreadLocalRandom.current().nextInt(6);
                        if (a >= b) continue;
                        locks[a].lock();
                        locks[b].lock();
                        synchronized (monitor) {
                            monitor.notifyAll();
                        }
                        locks[b].unlock();
                        locks[a].unlock();
                        if (me % 2 == 0) queue.put(a); else queue.take();
                        if (me == 3) synchronized (monitor) { monitor.wait(); }
                        Thread.sleep(0, 300000);
                    }
                } catch (InterruptedException e) {
                    throw new RuntimeException(e);
                }
            });
            t.setDaemon(true);
            t.start();
        }
        System.out.println("ready");
        System.in.read();
    }
}
