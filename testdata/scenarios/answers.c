/* A server of the OpenAI chat interface in C that answers 2+2, and of which one
 * part can really get stuck: it waits for a condition that never comes.
 * One thread accepts, one computes, each connection has its own.
 *
 * usage: answers [accept|engine|stream]
 */
#include "scenario.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wanted = PTHREAD_COND_INITIALIZER, made = PTHREAD_COND_INITIALIZER, never = PTHREAD_COND_INITIALIZER;
static int asked, answered;
static const char *stuck = "";

/* At least one thread wakes now and then, as in any real server: nothing but the
 * stuck part is wrong. */
static void *ticks(void *unused)
{
	for (;;)
		usleep(200 * 1000);
	return unused;
}

static void stop_if(const char *part)
{
	if (strcmp(stuck, part) != 0)
		return;
	pthread_mutex_lock(&lock);
	for (;;)
		pthread_cond_wait(&never, &lock);
}

static void *engine(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		while (asked == answered)
			pthread_cond_wait(&wanted, &lock);
		pthread_mutex_unlock(&lock);
		stop_if("engine");
		pthread_mutex_lock(&lock);
		answered = asked;
		pthread_cond_broadcast(&made);
	}
	return unused;
}

static void say(int c, const char *text)
{
	if (write(c, text, strlen(text)) < 0)
		return;
}

static void *serve(void *arg)
{
	int c = (int)(long)arg;
	char request[8192];
	size_t have = 0;
	while (have < sizeof request - 1) {
		ssize_t n = read(c, request + have, sizeof request - 1 - have);
		if (n <= 0)
			break;
		have += n;
		request[have] = 0;
		char *body = strstr(request, "\r\n\r\n");
		if (body && (strncmp(request, "GET ", 4) == 0 || strchr(body, '}')))
			break;
	}
	request[have] = 0;
	if (strncmp(request, "GET /health ", 12) == 0) {
		say(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
	} else if (strncmp(request, "GET /v1/models ", 15) == 0) {
		say(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n{\"data\":[{\"id\":\"small\"}]}");
	} else if (strncmp(request, "POST /v1/chat/completions ", 26) == 0) {
		pthread_mutex_lock(&lock);
		int mine = ++asked;
		pthread_cond_signal(&wanted);
		while (answered < mine)
			pthread_cond_wait(&made, &lock);
		pthread_mutex_unlock(&lock);
		say(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n"
		       "data: {\"choices\":[{\"delta\":{\"content\":\"4\"}}]}\n\n");
		stop_if("stream");
		say(c, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
	} else {
		say(c, "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
	}
	close(c);
	return NULL;
}

static void *begin(void *(*f)(void *), void *arg)
{
	pthread_t t;
	if (pthread_create(&t, NULL, f, arg) != 0)
		exit(1);
	pthread_detach(t);
	return NULL;
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	if (argc > 1)
		stuck = argv[1];
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof addr;
	if (s < 0 || bind(s, (struct sockaddr *)&addr, sizeof addr) != 0 || listen(s, 16) != 0 ||
	    getsockname(s, (struct sockaddr *)&addr, &len) != 0) {
		perror("listen");
		return 1;
	}
	begin(engine, NULL);
	begin(ticks, NULL);
	printf("ready %d\n", ntohs(addr.sin_port));
	fflush(stdout);
	stop_if("accept");
	for (;;) {
		int c = accept(s, NULL, NULL);
		if (c >= 0)
			begin(serve, (void *)(long)c);
	}
}
