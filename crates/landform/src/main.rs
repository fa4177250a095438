mod tf;

#[tokio::main]
async fn main() -> std::process::ExitCode {
    tf::run(std::env::args_os().skip(2).collect()).await
}
