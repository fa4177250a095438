pub mod access;
pub mod approval;
pub mod catalog;
pub mod desired;
pub mod recovery;
pub mod retention;
pub mod work;
