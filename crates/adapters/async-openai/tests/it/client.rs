//! The whole way: async-openai's client against a server in this process, its stream through observers.

use async_openai::{
    Client,
    config::OpenAIConfig,
    types::chat::{ChatCompletionRequestUserMessageArgs, CreateChatCompletionRequestArgs},
};
use futures_util::StreamExt;
use streamkeeper_async_openai as _;
use streamkeeper_contract::{Chunk, Outcome, Verdict, id};
use streamkeeper_stream::{ObserveExt, ObservedError, ObserverContext, Observers, Registration, StreamObserver};

use crate::{
    common::Hide,
    server::{Served, Server},
};

/// The answer as the program gets it, and how it ended.
async fn ask(server: &Server, observers: impl Into<Observers>) -> (String, Option<Outcome>) {
    let config = OpenAIConfig::new().with_api_base(server.url.clone()).with_api_key("none");
    let message = ChatCompletionRequestUserMessageArgs::default().content("Where is my parcel?").build().unwrap();
    let request = CreateChatCompletionRequestArgs::default().model("demo").messages([message.into()]).build().unwrap();
    let stream = Client::with_config(config).chat().create_stream(request).await.unwrap();

    let mut stream = stream.observed(observers);
    let mut answer = String::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(item) => item.choices.into_iter().for_each(|choice| answer += &choice.delta.content.unwrap_or_default()),
            Err(ObservedError::Ended(outcome)) => return (answer, Some(Outcome::clone(&outcome))),
            Err(error) => panic!("{error:?}"),
        }
    }
    (answer, None)
}

fn pieces(name: &str) -> Vec<Vec<u8>> {
    crate::common::fixture(name).as_bytes().chunks(37).map(<[u8]>::to_vec).collect()
}

#[tokio::test]
async fn a_name_is_hidden_in_a_live_stream() {
    let server = Server::start(pieces("support-chat.openai.sse"), false);
    let (answer, ended) = ask(&server, Hide("Maya, thanks").guard()).await;
    assert!(answer.starts_with("Hi [hidden] for your patience!"), "{answer}");
    assert_eq!(ended, None);
}

#[derive(Clone)]
struct Halt;

impl StreamObserver for Halt {
    fn on_chunk(&mut self, chunk: &Chunk, _: &mut ObserverContext<'_>) -> Verdict {
        if chunk.text() == Some(" cannot help") { Verdict::stop("refused", "it refused") } else { Verdict::Continue }
    }
}

/// A stop drops the client's stream, and so the request: the server, which would go on for ever, sees the client hang up.
#[tokio::test]
async fn a_stop_cancels_the_request() {
    let server = Server::start(pieces("refusal.openai.sse"), true);
    let (answer, ended) = ask(&server, Registration::guard(id!("halt"), Halt)).await;
    assert_eq!(answer, "I'm sorry, but I");
    let Some(Outcome::Stopped(stop)) = ended else { panic!("{ended:?}") };
    assert_eq!(stop.code, "refused");
    assert_eq!(tokio::task::spawn_blocking(|| server.served()).await.unwrap(), Served::HungUp);
}
